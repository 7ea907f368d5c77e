// Package stripe spreads writers of one counter over several cache lines, so
// that cores do not take the line from each other on every call.
package stripe

import "unsafe"

// Cells is how many stripes a spread counter has. More would cost memory in
// every busy object; fewer would make two goroutines meet more often than one
// time in eight.
const Cells = 8

// Line is the distance between stripes that keeps them apart.
const Line = 64

// Index returns the stripe of the calling goroutine, below Cells. It hashes the
// address of a stack variable: goroutines have their own stacks, the same
// goroutine nearly always gets the same answer, and nothing is shared or read
// from the runtime. Two goroutines may get the same stripe; that costs speed,
// never a count.
func Index() int {
	var here byte
	const golden = 0x9E3779B97F4A7C15
	return int(uint64(uintptr(unsafe.Pointer(&here))>>11) * golden >> 61)
}
