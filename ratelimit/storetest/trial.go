package storetest

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/ratelimit"
)

// trial is one run of a check. Its methods that begin with a verb of Store use a key
// of its own and end the check on an error that should not be.
type trial struct {
	Subject
	short bool
	ctx   context.Context
	key   ratelimit.StoreKey

	mu    sync.Mutex
	seen  []string // what went wrong
	lacks string   // what the Subject would need

	passed time.Duration // by pass
	leapt  time.Duration // of it, without that time really passed
}

func newTrial(s Subject, short bool) *trial {
	name := fmt.Sprintf("storetest-%016x", rand.Uint64())
	return &trial{Subject: s, short: short, ctx: context.Background(), key: ratelimit.StoreKey{Limiter: name, Key: "key"}}
}

// errorf notes that the rule is broken. Any goroutine may call it.
func (t *trial) errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = append(t.seen, fmt.Sprintf(format, args...))
}

// fatalf is errorf and ends the check. Only the check's own goroutine may call it.
func (t *trial) fatalf(format string, args ...any) {
	t.errorf(format, args...)
	panic(over{})
}

// need ends the check, which does not apply, unless the Subject can do what.
func (t *trial) need(can bool, what string) {
	if !can {
		t.lacks = what
		panic(over{})
	}
}

// want notes what was not as it should be.
func (t *trial) want(what string, got, want any) {
	if got != want {
		t.errorf("%s is %v, want %v", what, got, want)
	}
}

// within notes a duration that is not in (more, most].
func (t *trial) within(what string, got, more, most time.Duration) {
	if got <= more || got > most {
		t.errorf("%s is %v, want more than %v and at most %v", what, got, more, most)
	}
}

// pass lets d pass for the store.
func (t *trial) pass(d time.Duration) {
	t.passed += d
	if t.Pass == nil {
		time.Sleep(d)
		return
	}
	t.Pass(d)
	t.leapt += d
}

// A watch measures how much time has passed for the store.
type watch struct {
	t             *trial
	began         int64
	passed, leapt time.Duration
}

func (t *trial) watch() watch { return watch{t, clock.Now(), t.passed, t.leapt} }

// least and most are what has passed at least and at most: it cannot be known when
// within a call the store looked at its clock, which counts whole microseconds.
func (w watch) least() time.Duration { return w.t.passed - w.passed }
func (w watch) most() time.Duration {
	return time.Duration(clock.Now()-w.began) + w.t.leapt - w.leapt + time.Microsecond
}

// come is how many whole tokens come at rate r in d.
func come(r ratelimit.Rate, d time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(r.Tokens), uint64(d))
	n, _ := bits.Div64(hi, lo, uint64(r.Per))
	return int64(n)
}

func (t *trial) ask(q ratelimit.Quota, a ratelimit.Ask) ratelimit.Grant { return t.askOf(t.key, q, a) }

func (t *trial) askOf(key ratelimit.StoreKey, q ratelimit.Quota, a ratelimit.Ask) ratelimit.Grant {
	g, err := t.Store.Take(t.ctx, key, q, a)
	if err != nil {
		t.fatalf("Take(%+v): %v", a, err)
	}
	return g
}

// take takes n tokens or none, and notes if they are not given.
func (t *trial) take(q ratelimit.Quota, n int64) ratelimit.Grant {
	g := t.ask(q, ratelimit.Ask{Min: n, Max: n})
	t.want(fmt.Sprintf("what is granted of %d", n), g.Tokens, n)
	return g
}

// refused notes if n tokens are given.
func (t *trial) refused(q ratelimit.Quota, n int64) ratelimit.Grant {
	g := t.ask(q, ratelimit.Ask{Min: n, Max: n})
	t.want(fmt.Sprintf("what is granted of %d", n), g.Tokens, int64(0))
	return g
}

// left is how many tokens the store says there are.
func (t *trial) left(q ratelimit.Quota) int64 { return t.ask(q, ratelimit.Ask{}).Remaining }

func (t *trial) refund(q ratelimit.Quota, r ratelimit.Receipt, n int64) {
	if err := t.Store.Refund(t.ctx, t.key, q, r, n); err != nil {
		t.fatalf("Refund of %d: %v", n, err)
	}
}

func (t *trial) debit(q ratelimit.Quota, n int64) {
	if err := t.Store.Debit(t.ctx, t.key, q, n); err != nil {
		t.fatalf("Debit of %d: %v", n, err)
	}
}

func (t *trial) beat(limiter, node string, ttl time.Duration) int64 {
	n, err := t.Store.Beat(t.ctx, limiter, node, ttl)
	if err != nil {
		t.fatalf("Beat of %s: %v", node, err)
	}
	return n
}
