package ratelimit

import (
	"context"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/stage"
)

// SlidingLog admits at most so many tokens in a window of time that slides along, and
// knows of each when it was taken: for small limits that must be exact both ways, such
// as three text messages an hour or five attempts at a password in ten minutes.
//
// It promises that no window, wherever it begins, has more tokens than the limit, and
// that it refuses only what would be more; a window has its beginning and not its end.
// For that it takes 8 to 16 bytes for each token of the limit, 16 to 32 with
// WithRejectedCounted, so the limit is at most 1 000 tokens in 31 days. See the package
// documentation for which window to pick.
//
// Most callers want Allow, or Take for what is left and when to come again. A call
// that is refused does not count, unless WithRejectedCounted says so.
//
// A refusal takes no lock. Taking tokens and giving them back does, for some tens of
// instructions, which by its nature happens seldom: no more often than the limit. So
// does a refusal that counts. None allocates. Wait uses timers. A SlidingLog starts no
// goroutine and needs no closing. It is safe for concurrent use and must not be
// copied. A nil *SlidingLog lets everything pass; the zero SlidingLog is of no use,
// make one with NewSlidingLog.
type SlidingLog struct {
	// cur is the configuration in force. Written under stamps.mu.
	cur    atomic.Pointer[logPlan]
	stamps stamps
	desk   desk
	line   line
}

// NewSlidingLog returns a limiter of that name, which must not be empty, that admits
// limit.Tokens in any limit.Per. It returns every complaint about them and the options
// at once.
//
// For package variables there is sluice.Must.
func NewSlidingLog(name string, limit Rate, opts ...SlidingLogOption) (*SlidingLog, error) {
	s := newKindSettings(limit)
	for i, o := range opts {
		if s.given(i, o != nil) {
			o.slidingLog(s)
		}
	}
	c := SlidingLogConfig(s.sliding())
	if err := s.check(name, "SlidingLog", c, "WithMaxWaiters"); err != nil {
		return nil, err
	}
	return newSlidingLog(name, c, !s.uncounted), nil
}

func newSlidingLog(name string, c SlidingLogConfig, counted bool) *SlidingLog {
	l := new(SlidingLog)
	l.desk.init(name, l, counted)
	p := newLogPlan(name, c)
	l.stamps.reach(p.memory())
	l.cur.Store(p)
	return l
}

// Name returns the name given to NewSlidingLog.
func (l *SlidingLog) Name() string { return l.front().title() }

// Allow takes a token if there is one, and reports whether.
func (l *SlidingLog) Allow() bool { return l.Take(1).OK() }

// AllowN takes n tokens if there are so many, and reports whether.
func (l *SlidingLog) AllowN(n int64) bool { return l.Take(n).OK() }

// Take takes n tokens if there are so many, and tells what it decided. An n of 0
// takes nothing; one that is negative or more than the limit is never admitted.
func (l *SlidingLog) Take(n int64) Decision { return l.front().take(n) }

// Peek tells what Take would answer, and takes and counts nothing. Peek(0) is for
// looking at what is there.
func (l *SlidingLog) Peek(n int64) Decision { return l.front().peek(n) }

// Refund gives back what d took, as if it had never been asked: the call was not made
// after all, or is not to count. It is for a Decision of this limiter, once; for one
// that took nothing, or whose tokens count no more, it does nothing.
func (l *SlidingLog) Refund(d Decision) { l.front().refund(d) }

// Layer returns the limiter as a Layer of TakeAll.
func (l *SlidingLog) Layer() Layer { return l.front().layer() }

// Wait takes a token, and waits for it if need be: see WaitN.
func (l *SlidingLog) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN takes n tokens and returns nil when it has them. If they cannot be there
// before ctx's deadline, or within MaxWait, or if MaxWaiters wait already, it returns
// at once with a *LimitError and takes nothing. One that says so because of the
// deadline matches context.DeadlineExceeded.
//
// Callers get their tokens in the order in which they came, whatever their n: while
// one waits, nobody passes him. How long those before him will take is not known to
// the last, so a caller may also be refused later, when it is clear. If ctx ends while
// he waits, its own error is returned; so it is if it has ended before.
func (l *SlidingLog) WaitN(ctx context.Context, n int64) error { return l.front().wait(ctx, n) }

// Do runs call if there is a token for it, and returns its error, or the refusal,
// which matches ErrLimited. It waits for a token only if MaxWait says so. When call's
// error says that a guard further in refused, the token is given back.
func (l *SlidingLog) Do(ctx context.Context, call func(context.Context) error) error {
	return l.front().do(ctx, call)
}

// Admit and Settle let sluice.Call and sluice.Chain run the limiter in two steps.
func (l *SlidingLog) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	return l.front().admit(ctx, now)
}

// Settle is the second step after Admit.
func (l *SlidingLog) Settle(t stage.Ticket, _ context.Context, _ int64, err error, completed bool) {
	l.front().settle(t, err, completed)
}

// front is the desk of the limiter, nil for a nil SlidingLog.
func (l *SlidingLog) front() *desk {
	if l == nil {
		return nil
	}
	return &l.desk
}

// The methods below make it a teller.

func (l *SlidingLog) take(_ uint64, n, now int64) Decision {
	return l.takeBehind(l.line.ahead.Load(), n, now)
}

// takeFirst is take for whoever is in front of the line.
func (l *SlidingLog) takeFirst(n, now int64) Decision { return l.takeBehind(0, n, now) }

func (l *SlidingLog) takeBehind(ahead, n, now int64) Decision {
	p := l.cur.Load()
	if !p.can(n) {
		return l.look(p, ahead, n, now)
	}
	d, turn := p.look(&l.stamps, ahead, n, now)
	if !d.OK() && l.stamps.still(turn) {
		return d
	}
	l.stamps.mu.Lock()
	defer l.stamps.mu.Unlock()
	if !l.stamps.still(turn) {
		d, _ = p.look(&l.stamps, ahead, n, now)
	}
	if d.OK() {
		d.lack, d.mark = -packLog(p.width, p.remaining(d)-n), max(now, l.stamps.latest.Load())
		l.stamps.add(n, d.mark)
	}
	return d
}

func (l *SlidingLog) peek(_ uint64, n, now int64) Decision {
	return l.look(l.cur.Load(), l.line.ahead.Load(), n, now)
}

// look decides about any n and takes nothing.
func (l *SlidingLog) look(p *logPlan, ahead, n, now int64) Decision {
	d, turn := p.look(&l.stamps, ahead, n, now)
	if !l.stamps.still(turn) {
		l.stamps.mu.Lock()
		defer l.stamps.mu.Unlock()
		d, _ = p.look(&l.stamps, ahead, n, now)
	}
	return d
}

func (l *SlidingLog) giveBack(_ uint64, d Decision, _ int64) {
	if _, ok := d.by.judge.(*logPlan); ok {
		l.stamps.mu.Lock()
		l.stamps.remove(d.n, d.mark)
		l.stamps.mu.Unlock()
		l.line.stir()
	}
}

func (l *SlidingLog) refund(_ uint64, d Decision) {
	if d.mark >= 0 {
		l.giveBack(0, d, 0)
		l.desk.tally.countRefund()
	}
}

func (l *SlidingLog) count(_ uint64, d Decision) {
	l.desk.tally.count(d)
	if d.lack <= 0 {
		return
	}
	if p, ok := d.by.judge.(*logPlan); ok && p.penalises(d.n) {
		l.stamps.mu.Lock()
		defer l.stamps.mu.Unlock()
		l.stamps.add(d.n, max(d.mark, l.stamps.latest.Load()))
	}
}

func (l *SlidingLog) receipt(d Decision) any { return d.by }

func (l *SlidingLog) wait(ctx context.Context, d Decision, now int64) (Decision, error) {
	return l.desk.waited(l.line.wait(ctx, d, now, l.cur.Load().config.patience(), l.takeFirst))
}

func (l *SlidingLog) waitsInDo() bool { return l.cur.Load().config.MaxWait > 0 }

func (l *SlidingLog) state() (state int64, steady bool) {
	return int64(l.stamps.turn.Load()), l.line.ahead.Load() == 0
}
