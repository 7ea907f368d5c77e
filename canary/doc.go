// Package canary decides which version of a service serves a request.
package canary
