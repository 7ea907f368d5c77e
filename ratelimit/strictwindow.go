package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
	"github.com/sluicego/sluice/metrics"
)

// StrictWindow never admits more than its limit in any window of time, wherever the
// window begins, in one word of state for a limit of any size: for a partner who cuts
// off at a thousand an hour and counts them in a way that is not known.
//
// It is a token bucket whose burst and rate add up to the limit. After a pause, a share
// of the limit can be taken at once, the burst; the rest comes evenly, so that at the
// end of any window that began with the whole burst just the limit has been taken:
//
//	burst = share × limit, rounded up
//	rate = (limit − burst + 1) / window
//
// (The first token and one that comes a window later are not in the same window:
// hence the 1.) The larger the share, the more can go at once and the less goes in the
// long run. With a share of a half, half of the limit goes at once, and about half of
// it in each window of steady use; one of nearly nothing is a steady stream of the
// limit, and one of 1 is the limit at once and then one token a window. See the package
// documentation for which window to pick.
//
// Most callers want Allow, or Take for what is left and when to come again. More than
// the burst can never be taken at once.
//
// Asking and giving back take no lock and allocate nothing. Waiting uses a timer. A
// StrictWindow starts no goroutine and needs no closing. It is safe for concurrent use
// and must not be copied. A nil *StrictWindow lets everything pass; the zero
// StrictWindow is of no use, make one with NewStrictWindow.
type StrictWindow struct {
	bucket *Limiter
	config atomic.Pointer[StrictWindowConfig] // written under mu, after bucket
	mu     sync.Mutex                         // puts changes of the configuration in order
}

// NewStrictWindow returns a limiter of that name, which must not be empty, that admits
// no more than limit.Tokens in any limit.Per. It returns every complaint about them and
// the options at once.
//
// For package variables there is sluice.Must.
func NewStrictWindow(name string, limit Rate, opts ...StrictWindowOption) (*StrictWindow, error) {
	s := newKindSettings(limit)
	s.share = DefaultStrictWindowConfig().Share
	for i, o := range opts {
		if s.given(i, o != nil) {
			o.strictWindow(s)
		}
	}
	c := StrictWindowConfig{s.Rate, s.share, s.MaxWait, s.MaxWaiters}
	if err := s.check(name, "StrictWindow", c, "WithMaxWaiters"); err != nil {
		return nil, err
	}
	return newStrictWindow(name, c, s.uncounted, clock.Now()), nil
}

func newStrictWindow(name string, c StrictWindowConfig, uncounted bool, now int64) *StrictWindow {
	w := &StrictWindow{bucket: newLimiter(name, settings{Config: c.bucket(), strict: true, uncounted: uncounted}, now)}
	w.config.Store(&c)
	return w
}

// Name returns the name given to NewStrictWindow.
func (w *StrictWindow) Name() string { return w.limiter().Name() }

// Allow takes a token if there is one, and reports whether.
func (w *StrictWindow) Allow() bool { return w.limiter().Allow() }

// AllowN takes n tokens if there are so many, and reports whether.
func (w *StrictWindow) AllowN(n int64) bool { return w.limiter().AllowN(n) }

// Take takes n tokens if there are so many, and tells what it decided. An n of 0 takes
// nothing; one that is negative or more than the burst is never admitted.
func (w *StrictWindow) Take(n int64) Decision { return w.limiter().Take(n) }

// Peek tells what Take would answer, and takes and counts nothing. Peek(0) is for
// looking at what is there.
func (w *StrictWindow) Peek(n int64) Decision { return w.limiter().Peek(n) }

// Refund gives back what d took, as Limiter.Refund does: what is kept is within the
// limit still.
func (w *StrictWindow) Refund(d Decision) { w.limiter().Refund(d) }

// Layer returns the limiter as a Layer of TakeAll.
func (w *StrictWindow) Layer() Layer { return w.limiter().Layer() }

// Wait takes a token, and waits for it if need be: see WaitN.
func (w *StrictWindow) Wait(ctx context.Context) error { return w.limiter().Wait(ctx) }

// WaitN takes n tokens and waits for them if need be, as Limiter.WaitN does.
func (w *StrictWindow) WaitN(ctx context.Context, n int64) error { return w.limiter().WaitN(ctx, n) }

// Do runs call if there is a token for it, as Limiter.Do does.
func (w *StrictWindow) Do(ctx context.Context, call func(context.Context) error) error {
	return w.limiter().Do(ctx, call)
}

// Admit and Settle let sluice.Call and sluice.Chain run the limiter in two steps.
func (w *StrictWindow) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	return w.limiter().Admit(ctx, now)
}

// Settle is the second step after Admit.
func (w *StrictWindow) Settle(t stage.Ticket, ctx context.Context, now int64, err error, completed bool) {
	w.limiter().Settle(t, ctx, now, err, completed)
}

// Config returns what the limiter decides on.
func (w *StrictWindow) Config() StrictWindowConfig {
	if w == nil {
		return StrictWindowConfig{}
	}
	return *w.config.Load()
}

// Update changes what the limiter decides on, and keeps the tokens that are there as
// far as the new burst can hold them. A window that the change falls into may have as
// many as both limits admit in their parts of it. An equal configuration changes
// nothing; one that does not validate is returned as an error and changes nothing.
func (w *StrictWindow) Update(c StrictWindowConfig) error {
	if err := c.Validate(); err != nil || w == nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.bucket.Update(c.bucket()); err != nil {
		return err
	}
	w.config.Store(&c)
	return nil
}

// Snapshot returns what the limiter looks like now. Its Rate is the limit.
func (w *StrictWindow) Snapshot() Snapshot { return w.limiter().Snapshot() }

// Collect yields the limiter's figures, for metrics.Set. Counters never go down.
func (w *StrictWindow) Collect(yield func(metrics.Sample) bool) { w.limiter().Collect(yield) }

// View returns the Snapshot, for metrics.Set.
func (w *StrictWindow) View() any { return w.Snapshot() }

// limiter is the bucket, nil for a nil StrictWindow.
func (w *StrictWindow) limiter() *Limiter {
	if w == nil {
		return nil
	}
	return w.bucket
}
