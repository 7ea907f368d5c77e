package adaptive

import (
	"fmt"
	"math"
	"time"
)

// A Signal is something that tells how busy the process or its machine is. The zero
// Signal is none.
type Signal uint8

const (
	// QueueDelay is how long work waits before it is begun: goroutines for a processor
	// (99th percentile), or calls in a queue that ObserveDelay was told of (mean),
	// whichever is longer. In seconds.
	QueueDelay Signal = iota + 1
	// Load1 is the load average of a minute, of the host; in a container, where that
	// tells of strangers, the number of goroutines that run or could, averaged over a
	// minute.
	Load1
	// CPU is the share of the CPU time that the process may have, or its container has,
	// that is in use, averaged over a second. Outside a container it is the host's, used
	// by whomever: there, other processes can make this one refuse calls.
	CPU
	// AvgRT is how long calls took that ended in the last second, on average. In
	// seconds.
	AvgRT
	// EntryQPS is how many calls asked for leave in the last second.
	EntryQPS
	// Concurrency is how many calls are under way.
	Concurrency

	signals = iota + 1 // for arrays that a Signal is an index of
)

var signalNames = [signals]string{"", "queue_delay", "load1", "cpu", "avg_rt", "entry_qps", "concurrency"}

// String returns the signal in snake case, as OverloadError.Reason does.
func (s Signal) String() string {
	if s > 0 && s < signals {
		return signalNames[s]
	}
	return fmt.Sprintf("Signal(%d)", uint8(s))
}

// MarshalText returns the text of String, for JSON and logs.
func (s Signal) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// format is a value of the signal as people read it.
func (s Signal) format(v float64) string {
	switch s {
	case QueueDelay, AvgRT:
		return time.Duration(v * float64(time.Second)).Round(time.Microsecond).String()
	case CPU:
		return fmt.Sprintf("%.3g %%", v*100)
	}
	if math.Abs(v) >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// SystemMode says what a System does when a signal is above its threshold.
type SystemMode uint8

const (
	// Hard refuses all calls while QueueDelay, CPU or AvgRT is above its threshold, and
	// each call above that of EntryQPS or Concurrency, whatever its priority. Load1
	// refuses as BBR does.
	Hard SystemMode = iota + 1
	// BBR is Hard, but while QueueDelay, Load1 or CPU is above its threshold, it refuses
	// only calls beyond as many under way as the process can work on at once: the most
	// that succeeded in a second × the shortest mean time that they took.
	BBR
	// Proportional refuses a share of the calls, just so many that the signals come back
	// to their thresholds: the least important first, never more than 95 %.
	Proportional
)

var systemModeNames = [...]string{"", "hard", "bbr", "proportional"}

func (m SystemMode) known() bool { return m >= Hard && m <= Proportional }

// String returns the mode in lower case.
func (m SystemMode) String() string {
	if m.known() {
		return systemModeNames[m]
	}
	return fmt.Sprintf("SystemMode(%d)", uint8(m))
}

// MarshalText returns the text of String, for JSON and logs.
func (m SystemMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what String writes.
func (m *SystemMode) UnmarshalText(text []byte) error {
	for known := Hard; known.known(); known++ {
		if string(text) == known.String() {
			*m = known
			return nil
		}
	}
	return fmt.Errorf("%q is not one of %v, %v, %v", text, Hard, BBR, Proportional)
}
