//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package adaptive

import "time"

// processTime is not known here.
func processTime() (taken time.Duration, ok bool) { return 0, false }
