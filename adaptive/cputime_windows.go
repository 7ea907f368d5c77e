package adaptive

import (
	"syscall"
	"time"
)

// processTime is the CPU time that this process has taken; ok is false if that is
// not known.
func processTime() (taken time.Duration, ok bool) {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0, false
	}
	var created, ended, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(self, &created, &ended, &kernel, &user); err != nil {
		return 0, false
	}
	return span(kernel) + span(user), true
}

// span is a Filetime that is no date but a time taken, in units of 100 ns.
func span(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}
