package roster

import "sync/atomic"

// Spread puts c in the place of current, and has give give it to all objects that live.
// Several may be at it at once: each goes on until what it has given last is current, so
// in the end all have that.
//
// It comes into its place first, and give lists the objects after that, so one that is
// made meanwhile is among them, or has seen it.
func Spread[C any](current *atomic.Pointer[C], c *C, give func(*C)) {
	current.Store(c)
	for {
		give(c)
		newest := current.Load()
		if newest == c {
			return
		}
		c = newest // it came in between, and may have reached an object before c did
	}
}
