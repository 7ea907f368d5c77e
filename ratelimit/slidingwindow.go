package ratelimit

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// SlidingWindow admits at most so many tokens in a window of time that slides along,
// and remembers of the past two numbers only: for limits that are told as "1000 an
// hour" and may all be used at once, of any size up to 16 777 214, in one word.
//
// It promises that no window of those that follow one another from its beginning has
// more tokens than the limit, and no window wherever it begins more than twice the
// limit less one. That takes somebody who uses a whole limit at the end of one of
// those windows and the next as fast as he is let; who comes evenly gets the limit.
// It takes the tokens of the window before for spread evenly, so if they came early
// in it, it refuses for a while what a SlidingLog would admit. See the package
// documentation for which window to pick.
//
// Most callers want Allow, or Take for what is left and when to come again. A call
// that is refused does not count, unless WithRejectedCounted says so.
//
// Asking and giving back take no lock and allocate nothing; a refusal writes nothing
// but its count. Wait uses timers. A SlidingWindow starts no goroutine and needs no
// closing. It is safe for concurrent use and must not be copied. A nil *SlidingWindow
// lets everything pass; the zero SlidingWindow is of no use, make one with
// NewSlidingWindow.
type SlidingWindow struct {
	// cur is the configuration in force, with its counts. Written under mu.
	cur  atomic.Pointer[slidingPlan]
	mu   sync.Mutex // puts changes of the configuration in order
	desk desk
	line line
}

// NewSlidingWindow returns a limiter of that name, which must not be empty, that
// admits limit.Tokens in any limit.Per. It returns every complaint about them and the
// options at once.
//
// For package variables there is sluice.Must.
func NewSlidingWindow(name string, limit Rate, opts ...SlidingWindowOption) (*SlidingWindow, error) {
	s := newKindSettings(limit)
	for i, o := range opts {
		if s.given(i, o != nil) {
			o.slidingWindow(s)
		}
	}
	c := s.sliding()
	if err := s.check(name, "SlidingWindow", c, "WithMaxWaiters"); err != nil {
		return nil, err
	}
	return newSlidingWindow(name, c, !s.uncounted, clock.Now()), nil
}

func newSlidingWindow(name string, c SlidingWindowConfig, counted bool, now int64) *SlidingWindow {
	w := new(SlidingWindow)
	w.desk.init(name, w, counted)
	w.cur.Store(newSlidingPlan(name, c, nil, now))
	return w
}

// Name returns the name given to NewSlidingWindow.
func (w *SlidingWindow) Name() string { return w.front().title() }

// Allow takes a token if there is one, and reports whether.
func (w *SlidingWindow) Allow() bool { return w.Take(1).OK() }

// AllowN takes n tokens if there are so many, and reports whether.
func (w *SlidingWindow) AllowN(n int64) bool { return w.Take(n).OK() }

// Take takes n tokens if there are so many, and tells what it decided. An n of 0
// takes nothing; one that is negative or more than the limit is never admitted.
func (w *SlidingWindow) Take(n int64) Decision { return w.front().take(n) }

// Peek tells what Take would answer, and takes and counts nothing. Peek(0) is for
// looking at what is there.
func (w *SlidingWindow) Peek(n int64) Decision { return w.front().peek(n) }

// Refund gives back what d took, as if it had never been asked: the call was not made
// after all, or is not to count. It is for a Decision of this limiter, once; for one
// that took nothing, or whose tokens count no more, it does nothing. Nor does it when
// the length of the windows has changed since.
func (w *SlidingWindow) Refund(d Decision) { w.front().refund(d) }

// Layer returns the limiter as a Layer of TakeAll.
func (w *SlidingWindow) Layer() Layer { return w.front().layer() }

// Wait takes a token, and waits for it if need be: see WaitN.
func (w *SlidingWindow) Wait(ctx context.Context) error { return w.WaitN(ctx, 1) }

// WaitN takes n tokens and returns nil when it has them. If they cannot be there
// before ctx's deadline, or within MaxWait, or if MaxWaiters wait already, it returns
// at once with a *LimitError and takes nothing. One that says so because of the
// deadline matches context.DeadlineExceeded.
//
// Callers get their tokens in the order in which they came, whatever their n: while
// one waits, nobody passes him. How long those before him will take is not known to
// the last, so a caller may also be refused later, when it is clear. If ctx ends while
// he waits, its own error is returned; so it is if it has ended before.
func (w *SlidingWindow) WaitN(ctx context.Context, n int64) error { return w.front().wait(ctx, n) }

// Do runs call if there is a token for it, and returns its error, or the refusal,
// which matches ErrLimited. It waits for a token only if MaxWait says so. When call's
// error says that a guard further in refused, the token is given back.
func (w *SlidingWindow) Do(ctx context.Context, call func(context.Context) error) error {
	return w.front().do(ctx, call)
}

// Admit and Settle let sluice.Call and sluice.Chain run the limiter in two steps.
func (w *SlidingWindow) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	return w.front().admit(ctx, now)
}

// Settle is the second step after Admit.
func (w *SlidingWindow) Settle(t stage.Ticket, _ context.Context, _ int64, err error, completed bool) {
	w.front().settle(t, err, completed)
}

// front is the desk of the limiter, nil for a nil SlidingWindow.
func (w *SlidingWindow) front() *desk {
	if w == nil {
		return nil
	}
	return &w.desk
}

// The methods below make it a teller.

func (w *SlidingWindow) take(_ uint64, n, now int64) Decision {
	return w.takeBehind(w.line.ahead.Load(), n, now)
}

// takeFirst is take for whoever is in front of the line.
func (w *SlidingWindow) takeFirst(n, now int64) Decision { return w.takeBehind(0, n, now) }

func (w *SlidingWindow) takeBehind(ahead, n, now int64) Decision {
	for {
		if d, ok := w.cur.Load().take(n, ahead, now); ok {
			return d
		}
		runtime.Gosched() // the counts are being replaced
	}
}

func (w *SlidingWindow) peek(_ uint64, n, now int64) Decision {
	for {
		if d, ok := w.cur.Load().peek(n, w.line.ahead.Load(), now); ok {
			return d
		}
		runtime.Gosched()
	}
}

func (w *SlidingWindow) giveBack(_ uint64, d Decision, _ int64) {
	if p, ok := d.by.judge.(*slidingPlan); ok {
		p.counts.giveBack(d.n, d.mark)
		w.line.stir()
	}
}

func (w *SlidingWindow) refund(_ uint64, d Decision) {
	if d.mark >= 0 {
		w.giveBack(0, d, 0)
		w.desk.tally.countRefund()
	}
}

func (w *SlidingWindow) count(_ uint64, d Decision) {
	w.desk.tally.count(d)
	if d.lack <= 0 {
		return
	}
	if p, ok := d.by.judge.(*slidingPlan); ok && p.penalises(d.n) {
		p.counts.add(d.n, p.counts.epoch+d.mark)
	}
}

func (w *SlidingWindow) receipt(d Decision) any { return d.by }

func (w *SlidingWindow) wait(ctx context.Context, d Decision, now int64) (Decision, error) {
	return w.desk.waited(w.line.wait(ctx, d, now, w.cur.Load().config.patience(), w.takeFirst))
}

func (w *SlidingWindow) waitsInDo() bool { return w.cur.Load().config.MaxWait > 0 }

func (w *SlidingWindow) state() (state int64, steady bool) {
	return int64(w.cur.Load().counts.word.Load()), w.line.ahead.Load() == 0
}
