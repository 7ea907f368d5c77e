package adaptive

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
)

// ErrOverload is what every refusal of a System matches with errors.Is. The refusal
// matches sluice.ErrRejected as well.
var ErrOverload = errors.New("adaptive: overload")

// OverloadError is the refusal of a System, found with errors.As; it implements
// sluice.Rejection. It is built ten times a second at most, so refusing allocates
// nothing. It may be kept.
type OverloadError struct {
	name             string
	signal           Signal
	value, threshold float64
	probability      float64
	capacity         float64 // calls that can be worked on at once, if that decided; else 0
}

// Error names the System, the signal, its value and threshold, and how many calls are
// refused.
func (e *OverloadError) Error() string {
	text := fmt.Sprintf("system %q: %v %s, threshold %s", e.name, e.signal, e.signal.format(e.value), e.signal.format(e.threshold))
	switch {
	case e.capacity > 0:
		return text + fmt.Sprintf(": calls beyond %.4g under way are refused", e.capacity)
	case e.probability == 1 && (e.signal == EntryQPS || e.signal == Concurrency): // a rule of the mode Hard
		return text + ": calls beyond it are refused"
	}
	return text + fmt.Sprintf(": %.3g %% of the calls are refused", e.probability*100)
}

// Is makes the refusal match ErrOverload and sluice.ErrRejected.
func (e *OverloadError) Is(target error) bool {
	return target == ErrOverload || target == sluice.ErrRejected
}

// Resource returns the name of the System.
func (e *OverloadError) Resource() string { return e.name }

// Policy returns "system".
func (e *OverloadError) Policy() string { return "system" }

// Reason returns the name of the Signal.
func (e *OverloadError) Reason() string { return e.signal.String() }

// Signal returns what is above its threshold. When a share of the calls is refused it
// may be below by now; then the share is on its way back to 0.
func (e *OverloadError) Signal() Signal { return e.signal }

// Value returns what the signal said when the refusal was built, in the Signal's unit.
func (e *OverloadError) Value() float64 { return e.value }

// Threshold returns what the signal should not exceed.
func (e *OverloadError) Threshold() float64 { return e.threshold }

// Probability returns the share of all calls that is refused: 1 where a rule refuses
// all that it applies to.
func (e *OverloadError) Probability() float64 { return e.probability }

// RetryAfter returns 0: how long an overload lasts is not known.
func (e *OverloadError) RetryAfter() time.Duration { return 0 }
