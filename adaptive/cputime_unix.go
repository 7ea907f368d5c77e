//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package adaptive

import (
	"syscall"
	"time"
)

// processTime is the CPU time that this process has taken; ok is false if that is
// not known.
func processTime() (taken time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
