//go:build !race

package bulkhead

const slowdown = 1
