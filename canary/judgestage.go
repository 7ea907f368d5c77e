package canary

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// A judgeStage is what was seen while the canary had one share of the users: one step of
// a rollout. A result belongs to the stage whose plan decided on its call, not to the one
// in which it came in.
type judgeStage struct {
	Trial
	known     atomic.Uint64 // the latest generation in which the shares are these; raised by the controller
	slowAbove atomic.Int64  // what a call must exceed to be slow; written by tune
	warmUntil int64
	number    int64 // of the step, the first is 1; written by begin before anybody sees the stage
	// prev is the stage before, for results that come in late; taken away by the begin of
	// the next one.
	prev atomic.Pointer[judgeStage]
	// marks has four bits for each point: what is known of the users who lie there.
	marks  []atomic.Uint32
	_      [64]byte // apart from what every call reads
	canary judgeSide
	stable judgeSide
}

// A judgeSide counts one version in one stage; one cache line. All raised by observe.
type judgeSide struct {
	requests atomic.Int64
	failures atomic.Int64               // calls, Refused among them
	refused  atomic.Int64               // calls that the version's own breaker or bulkhead refused
	users    atomic.Int64               // points that were seen
	bad      [judgeMetrics]atomic.Int64 // points that were seen to fail, by metric
	_        [8]byte
}

// A mark is one thing known of a user.
type mark uint32

const (
	markSeen   mark = 1 << iota
	markFailed      // from here on, in the order of the metrics
	markSlow
	markPanicked
)

const (
	markBits  = 4
	markWord  = 32 / markBits // points in a word
	markWords = (int(All) + markWord - 1) / markWord
)

const never = math.MaxInt64

func newJudgeStage(t Trial, now int64, warmUp time.Duration) *judgeStage {
	s := &judgeStage{Trial: t, number: 1, warmUntil: clock.After(now, warmUp), marks: make([]atomic.Uint32, markWords)}
	s.known.Store(math.MaxUint64)
	s.slowAbove.Store(never)
	return s
}

// side returns the counts of the version of that name, nil if it is another one.
func (s *judgeStage) side(name string) *judgeSide {
	switch name {
	case s.Canary:
		return &s.canary
	case s.Stable:
		return &s.stable
	}
	return nil
}

// mark adds m to what is known of the users at point, and returns what is new of it.
func (s *judgeStage) mark(point uint32, m mark) mark {
	word, shift := &s.marks[point/markWord], point%markWord*markBits
	if mark(word.Load()>>shift)&m == m {
		return 0 // as for most calls, which then write nothing
	}
	return m &^ mark(word.Or(uint32(m)<<shift)>>shift)
}

// observe counts one result.
func (s *judgeStage) observe(side *judgeSide, point uint32, o sluice.Outcome, took time.Duration, panicked, refused bool) {
	m := markSeen
	if int64(took) > s.slowAbove.Load() {
		m |= markSlow
	}
	switch o {
	case sluice.Failure, sluice.Throttled:
		m |= markFailed
	case sluice.Ignored:
		if m&markSlow == 0 {
			return
		}
	}
	side.requests.Add(1) // before its failures, and read after them
	if m&markFailed != 0 {
		side.failures.Add(1)
	}
	if refused {
		side.refused.Add(1)
	}
	if panicked {
		m |= markPanicked
	}
	if fresh := s.mark(point, m); fresh != 0 {
		side.note(fresh)
	}
}

// note counts what is new of a user.
func (d *judgeSide) note(fresh mark) {
	if fresh&markSeen != 0 {
		d.users.Add(1)
	}
	for i := range d.bad {
		if fresh&(markFailed<<i) != 0 {
			d.bad[i].Add(1)
		}
	}
}

// A judgeTally is what one version's counts were at one moment.
type judgeTally struct {
	requests, failures, refused int64
	users                       int64 // points
	bad                         [judgeMetrics]int64
}

// read returns the counts; failures are never more than calls, nor users who failed more
// than users.
func (d *judgeSide) read() judgeTally {
	n := judgeTally{failures: d.failures.Load(), refused: d.refused.Load()}
	for i := range d.bad {
		n.bad[i] = d.bad[i].Load()
		n.users = max(n.users, n.bad[i]) // who is seen by one goroutine may fail by another, quicker one
	}
	n.users = max(n.users, d.users.Load())
	n.requests = d.requests.Load()
	return n
}
