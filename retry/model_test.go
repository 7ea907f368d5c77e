package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// What an attempt can be told to do.
type kind int

const (
	goesWell kind = iota
	fails
	throttles // and asks for a wait
	isRefused
	isIgnored
	answers
	obeys // runs until its ctx ends, if that comes first
	kinds
)

// A move is one attempt of a call.
type move struct {
	kind  kind
	takes time.Duration
	asks  time.Duration
}

// A game is one call: what it is made by, and what its attempts will do.
type game struct {
	config    Config
	allowed   int // repetitions in the budget
	deadline  time.Duration
	cancelled time.Duration
	moves     []move
}

// A verdict is how a call went.
type verdict struct {
	Calls  []time.Duration // when each attempt began
	Took   time.Duration
	Reason string // "" if the error came as it was
	Last   kind   // what the error is
	Made   int
	Left   int // in the budget
}

// expect plays the game in a few plain rules. It knows no contexts, atomics or errors.
func (g game) expect() (v verdict) {
	ends := min(g.deadline, g.cancelled)
	now, last, waited := time.Duration(0), goesWell, time.Duration(0)
	v.Left = g.allowed
	over := func(reason string, is kind) verdict {
		v.Took, v.Reason, v.Last = now, reason, is
		return v
	}
	for i := 0; ; i++ {
		m := g.moves[i%len(g.moves)]
		v.Calls = append(v.Calls, now)
		limit := ends
		if g.config.AttemptTimeout > 0 {
			limit = min(limit, now+g.config.AttemptTimeout)
		}
		now += m.takes
		if m.kind == obeys && now >= limit {
			now = limit
		} else if m.kind == obeys {
			m.kind = goesWell
		}
		switch {
		case m.kind == isRefused && v.Made == 0:
			return over("", isRefused)
		case m.kind == isRefused:
			v.Left++
			return over(ReasonRefused, last)
		}
		v.Made++
		switch {
		case m.kind == goesWell, m.kind == answers:
			return over("", m.kind)
		case now >= ends && v.Made == 1:
			return over("", m.kind)
		case now >= ends:
			if m.kind != obeys {
				last = m.kind
			}
			return over(ReasonEnded, last)
		case m.kind == isIgnored, g.config.Attempts == 1:
			return over("", m.kind)
		}
		last = m.kind
		waited = min(max(g.config.Backoff, 2*waited), g.config.BackoffMax)
		wait := waited
		if m.kind == throttles {
			wait += m.asks
		}
		switch {
		case v.Made == g.config.Attempts:
			return over(ReasonAttempts, last)
		case m.kind == throttles && m.asks > g.config.MaxRetryAfter:
			return over(ReasonRetryAfter, last)
		case now+wait >= g.deadline:
			return over(ReasonDeadline, last)
		case v.Left == 0:
			return over(ReasonBudget, last)
		}
		v.Left--
		now += wait
		if now >= ends { // the caller goes away during the wait
			now = ends
			v.Left++
			return over(ReasonEnded, last)
		}
	}
}

// play makes the call.
func (g game) play(t *testing.T) (v verdict) {
	b, err := NewBudget("payments", WithRatio(0), WithMinPerSecond(float64(g.allowed)), WithWindow(time.Second))
	require.NoError(t, err)
	b.config.Window, b.config.MinPerSecond = time.Hour, (float64(g.allowed)+0.5)/3600 // so that nothing comes back
	b.ledger.width = b.config.width()
	p, err := New("payments", WithConfig(g.config), WithBudget(b))
	require.NoError(t, err)
	ctx, cancelDeadline := context.WithTimeout(t.Context(), g.deadline)
	defer cancelDeadline()
	ctx, cancel := context.WithCancel(ctx)
	defer time.AfterFunc(g.cancelled, cancel).Stop()
	defer cancel()

	began := time.Now()
	err = p.Do(ctx, func(ctx context.Context) error {
		m := g.moves[len(v.Calls)%len(g.moves)]
		v.Calls = append(v.Calls, time.Since(began))
		if m.kind != obeys {
			time.Sleep(m.takes)
			return m.result()
		}
		select {
		case <-time.After(m.takes):
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%w %w", kindError(obeys), ctx.Err())
		}
	})
	v.Took = time.Since(began)
	v.Last = kindOf(err)
	s := p.Snapshot()
	v.Left = int(s.Budget.Available)
	v.Made = int(s.Budget.Deposits) + int(s.Retries)
	if e, ok := errors.AsType[*Error](err); ok {
		v.Reason = e.Reason()
		assert.Equal(t, e.Attempts(), v.Made)
	}
	return v
}

// kindError is an error that tells what it came of.
type kindError kind

func (k kindError) Error() string { return fmt.Sprint("kind ", int(k)) }

func kindOf(err error) kind {
	switch k, ok := errors.AsType[kindError](err); {
	case ok:
		return kind(k)
	case errors.Is(err, sluice.ErrRejected):
		return isRefused
	}
	return goesWell
}

func (m move) result() error {
	err := error(kindError(m.kind))
	switch m.kind {
	case goesWell:
		return nil
	case throttles:
		return sluice.WithRetryAfter(sluice.Mark(err, sluice.Throttled), m.asks)
	case isRefused:
		return fmt.Errorf("calling: %w", errOpen)
	case isIgnored:
		return sluice.Ignore(err)
	case answers:
		return sluice.Mark(err, sluice.Success)
	}
	return err
}

// The policy goes by the plain rules, whatever the calls do. Durations are odd numbers
// of nanoseconds, so that no two things happen at one time.
func TestPolicyModel(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(rounds(4000)) {
		r := rand.New(rand.NewPCG(seed, 5))
		odd := func(most time.Duration) time.Duration {
			return time.Duration(r.Int64N(int64(most)))*1000 + time.Duration(r.Int64N(999)) + 1
		}
		g := game{
			config:   Config{Attempts: 1 + r.IntN(6), Backoff: odd(5000), BackoffFactor: 2, BackoffMax: time.Second, MaxRetryAfter: odd(50_000), AttemptGrowth: 1},
			allowed:  r.IntN(6),
			deadline: odd(200_000), cancelled: odd(200_000),
		}
		if r.IntN(3) == 0 {
			g.config.AttemptTimeout = odd(8000)
		}
		if r.IntN(3) == 0 {
			g.config.BackoffMax = g.config.Backoff + odd(10_000)
		}
		for range 1 + r.IntN(6) {
			m := move{fails, odd(15_000), odd(60_000)}
			if r.IntN(2) == 0 {
				m.kind = kind(r.IntN(int(kinds)))
			}
			g.moves = append(g.moves, m)
		}
		want := g.expect()
		seen[want.Reason]++
		synctest.Test(t, func(t *testing.T) {
			require.Equalf(t, want, g.play(t), "seed %d: %+v", seed, g)
		})
	}
	for _, reason := range []string{"", ReasonAttempts, ReasonBudget, ReasonDeadline, ReasonRetryAfter, ReasonEnded, ReasonRefused} {
		assert.Positive(t, seen[reason], "never seen: %q", reason)
	}
}
