package adaptive

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// SystemSnapshot is what a System looks like at one moment, as plain data.
type SystemSnapshot struct {
	Name string     `json:"name"`
	Mode SystemMode `json:"mode"`
	// Running: a Run is under way. Otherwise no signal is known.
	Running bool `json:"running"`
	// Refusing is why calls are refused, in words and numbers; empty if none are.
	Refusing string `json:"refusing,omitempty"`
	// Cause is the signal behind it, and Probability the share of all calls.
	Cause       Signal  `json:"cause,omitempty"`
	Probability float64 `json:"probability"`
	// Shed is the share of the calls of each priority, P0 first, in the mode
	// Proportional.
	Shed [3]float64 `json:"shed"`
	// Signals has those that are known or have a threshold.
	Signals []SignalSnapshot `json:"signals"`
	// First is the signal that has been above its threshold the longest, 0 if none is.
	First Signal `json:"first,omitempty"`
	// Capacity is how many calls can be worked on at once (see BBR), 0 if not known.
	Capacity float64 `json:"capacity"`
	// CPUSource says what CPU is a share of, and CPUProblem what went wrong with it.
	CPUSource  string               `json:"cpu_source,omitempty"`
	CPUProblem string               `json:"cpu_problem,omitempty"`
	InFlight   int64                `json:"in_flight"`
	Totals     SystemTotalsSnapshot `json:"totals"`
}

// SignalSnapshot is what one signal said last.
type SignalSnapshot struct {
	Signal    Signal  `json:"signal"`
	Known     bool    `json:"known"`
	Value     float64 `json:"value"`
	Threshold float64 `json:"threshold"` // 0: no rule
	// Above is how long it has been above its threshold, 0 if it is not.
	Above time.Duration `json:"above"`
}

// SystemTotalsSnapshot counts calls since NewSystem; the numbers never go down.
type SystemTotalsSnapshot struct {
	Success int64 `json:"success"`
	Failure int64 `json:"failure"` // Throttled is among them
	Ignored int64 `json:"ignored"`
	// Refused counts refusals by the signal.
	Refused map[Signal]int64 `json:"refused"`
}

// Snapshot returns what the System looks like now. It has no side effect and does not
// disturb calls, but it allocates.
func (s *System) Snapshot() SystemSnapshot {
	if s == nil {
		return SystemSnapshot{}
	}
	return s.snapshot(clock.Now())
}

func (s *System) snapshot(now int64) SystemSnapshot {
	v, c := s.verdict.Load(), s.counts()
	snap := SystemSnapshot{
		Name: s.name, Mode: s.config.Load().Mode, Running: s.running.Load(),
		Cause: v.cause, Probability: v.probability, Capacity: v.capacity.value,
		CPUSource: v.cpu.source, InFlight: c.inFlight(),
		Totals: SystemTotalsSnapshot{Success: c.succeeded, Failure: c.failed, Ignored: c.ignored, Refused: map[Signal]int64{}},
	}
	if v.cpu.problem != nil {
		snap.CPUProblem = v.cpu.problem.Error()
	}
	for _, why := range []*OverloadError{v.all, v.share, v.crowd, v.rush} {
		if why != nil && why.signal == v.cause && snap.Refusing == "" {
			snap.Refusing = why.Error()
		}
	}
	for class, chance := range v.shed {
		snap.Shed[class] = float64(chance) / (1 << 32)
	}
	var longest time.Duration
	for i := QueueDelay; i < signals; i++ {
		snap.Totals.Refused[i] = c.refused[i]
		f := v.findings[i]
		if !f.known && f.threshold == 0 {
			continue
		}
		signal := SignalSnapshot{Signal: i, Known: f.known, Value: f.value, Threshold: f.threshold}
		if f.since > 0 {
			signal.Above = time.Duration(max(now-f.since, 1))
		}
		if signal.Above > longest {
			longest, snap.First = signal.Above, i
		}
		snap.Signals = append(snap.Signals, signal)
	}
	return snap
}
