package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// Mode says who decides for a Shared limiter.
type Mode uint8

const (
	// ModeShared: the store decides, or a lease that it gave. Followed by ModeFallback.
	ModeShared Mode = iota + 1
	// ModeFallback: the store does not answer and is not asked, except now and then
	// whether it answers again; OnFailure decides. Followed by ModeShared.
	ModeFallback
)

// String returns "shared" or "fallback".
func (m Mode) String() string {
	switch m {
	case ModeShared:
		return "shared"
	case ModeFallback:
		return "fallback"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// MarshalText returns the text of String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// ModeEvent is one change of a Shared limiter's mode.
type ModeEvent struct {
	// Name is the limiter's.
	Name string
	// From and To differ; an event's From is the To of the one before it.
	From, To Mode
	// Cause is what the store failed with last, if To is ModeFallback.
	Cause error
	// Time is when it happened, by the wall clock.
	Time time.Time
}

// stay is one stay in a mode. A result of a call that began in an earlier stay
// decides nothing.
type stay struct {
	mode  Mode
	since int64
	cause error
	// failures without a success between, of all errands and of each kind, in ModeShared.
	failures [errandKinds]atomic.Int32
	// try is how to find out whether the store answers again, in ModeFallback.
	try func(context.Context) error
	// until is when to try the store again, in ModeFallback. Written by postpone.
	until atomic.Int64
	// probing says that somebody tries. Set by whoever does, cleared by postpone.
	probing atomic.Bool
	pause   time.Duration // guarded by node.mu: how long until was put off last
}

// The latch that stands in for a guard.
const (
	maxFailures = 5
	firstPause  = time.Second
	maxPause    = 30 * time.Second
)

// learn draws the consequences of e, which began in st and ended with err: none if st
// has ended, as move sees to.
func (n *node) learn(st *stay, e errand, err error) {
	now := clock.Now()
	switch {
	case err == nil && st.mode == ModeFallback:
		n.move(st, &stay{mode: ModeShared}, now)
	case err == nil:
		st.forgive(anything)
		st.forgive(e.kind)
	case st.mode == ModeFallback:
		n.postpone(st, err, now)
	case errors.Is(err, sluice.ErrRejected), n.hooks.guard == nil && st.fail(e.kind):
		n.move(st, &stay{mode: ModeFallback, cause: err, try: e.try}, now)
	}
}

// fail counts a failure, and reports whether it is one too many.
func (st *stay) fail(kind errandKind) bool {
	all, some := st.failures[anything].Add(1), st.failures[kind].Add(1)
	return max(all, some) >= maxFailures
}

// forgive forgets failures of a kind.
func (st *stay) forgive(kind errandKind) {
	if st.failures[kind].Load() != 0 {
		st.failures[kind].Store(0)
	}
}

// move ends the stay from and begins next, unless from has ended already. It is the
// only writer of cur.
func (n *node) move(from, next *stay, now int64) {
	n.mu.Lock()
	if n.cur.Load() != from {
		n.mu.Unlock()
		return
	}
	next.since = now
	if next.mode == ModeFallback {
		next.pause = pauseAfter(0, next.cause)
		next.until.Store(clock.After(now, next.pause))
		n.stats.fallbacks.Add(1)
	} else {
		n.stats.fallbackNanos.Add(now - from.since)
	}
	n.cur.Store(next)
	if n.hooks.listening() {
		n.events.Push(ModeEvent{n.name, from.mode, next.mode, next.cause, clock.Wall(now)})
	}
	n.mu.Unlock()
	n.work.ring()
	n.deliver()
}

// postpone puts off the next try of the store, which failed again. A call that somebody
// had decided on just before the stay began, and made in it, is no try.
func (n *node) postpone(st *stay, cause error, now int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now >= st.until.Load() {
		st.pause = pauseAfter(st.pause, cause)
		st.until.Store(clock.After(now, st.pause))
	}
	st.probing.Store(false)
}

// pauseAfter is how long to leave the store alone after it has been left alone for
// last: what the guard says, else twice as long, from a second to half a minute.
func pauseAfter(last time.Duration, cause error) time.Duration {
	var refusal sluice.Rejection
	if errors.As(cause, &refusal) && refusal.RetryAfter() > 0 {
		return min(refusal.RetryAfter(), maxPause)
	}
	return min(max(2*last, firstPause), maxPause)
}

// deliver tells the listeners what they have not been told.
func (n *node) deliver() {
	if n.hooks.listening() {
		n.events.Deliver(n.tell, nil)
	}
}

// tell gives one event to the logger and to every listener. A panic or Goexit in one
// does not keep it from the others.
func (n *node) tell(e ModeEvent) { n.tellFrom(-1, e) }

// tellFrom begins with the listener of that number; -1 is the logger.
func (n *node) tellFrom(i int, e ModeEvent) {
	if i == len(n.hooks.onMode) {
		return
	}
	defer n.tellFrom(i+1, e)
	defer n.caught()
	switch {
	case i >= 0:
		n.hooks.onMode[i](e)
	case n.hooks.logger != nil:
		logMode(n.hooks.logger, e)
	}
}

// caught ends a listener's panic and counts it.
func (n *node) caught() {
	if recover() != nil {
		n.stats.panics.Add(1)
	}
}

func logMode(l *slog.Logger, e ModeEvent) {
	level, attrs := slog.LevelInfo, []any{slog.String("resource", e.Name), slog.String("from", e.From.String()), slog.String("to", e.To.String())}
	if e.To == ModeFallback {
		level, attrs = slog.LevelWarn, append(attrs, slog.String("cause", e.Cause.Error()))
	}
	l.LogAttrs(context.Background(), level, "ratelimit: mode changed", slog.Group("sluice", attrs...))
}
