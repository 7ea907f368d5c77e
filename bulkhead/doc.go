// Package bulkhead bounds how many calls to a resource are under way at once: a
// Bulkhead by counting them, a Pool by running them on workers of its own.
package bulkhead
