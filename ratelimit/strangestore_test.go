package ratelimit

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// A strangeStore is a Store that can be told what to do instead of its work.
type strangeStore struct {
	Store
	instead atomic.Pointer[func() (Grant, error)]
}

func (s *strangeStore) Take(ctx context.Context, key StoreKey, q Quota, ask Ask) (Grant, error) {
	if f := s.instead.Load(); f != nil && ask.Max > 0 {
		return (*f)()
	}
	return s.Store.Take(ctx, key, q, ask)
}

func (s *strangeStore) Beat(ctx context.Context, limiter, node string, ttl time.Duration) (int64, error) {
	if f := s.instead.Load(); f != nil {
		_, err := (*f)()
		return math.MinInt64, err
	}
	return s.Store.Beat(ctx, limiter, node, ttl)
}

type guardFunc func(context.Context, func(context.Context) error) error

func (g guardFunc) Do(ctx context.Context, call func(context.Context) error) error {
	return g(ctx, call)
}

// aside runs f in a goroutine of its own, which may end as it likes.
func aside(f func()) {
	var w sync.WaitGroup
	w.Go(func() {
		defer func() { _ = recover() }()
		f()
	})
	w.Wait()
}

// A refusal without a time to come again, in Strict mode, was taken for a yes.
func TestShared_NoAnswerOfAStoreMintsOrBreaks(t *testing.T) {
	const most = math.MaxInt64
	for name, tc := range map[string]struct {
		g      Grant
		ok     bool // it is a yes
		failed bool // it is none of the answers that there are
	}{
		"nothing":                     {},
		"comes back in the past":      {g: Grant{RetryAfter: -5}},
		"never comes back":            {g: Grant{RetryAfter: most, ResetAfter: most, Remaining: most}},
		"less than nothing":           {g: Grant{Tokens: -5}, failed: true},
		"a negative ocean":            {g: Grant{Tokens: math.MinInt64}, failed: true},
		"more than asked for":         {g: Grant{Tokens: 1000, Remaining: 10}, failed: true},
		"an ocean":                    {g: Grant{Tokens: most, Remaining: most}, failed: true},
		"later than asked for":        {g: Grant{Tokens: 1, Wait: most}, failed: true},
		"before it was asked":         {g: Grant{Tokens: 1, Wait: -1}, failed: true},
		"less than nothing is left":   {g: Grant{Tokens: 1, Remaining: -7}, ok: true},
		"an ocean is left":            {g: Grant{Tokens: 1, Remaining: most}, ok: true},
		"was full before it was made": {g: Grant{Tokens: 1, ResetAfter: -1}, ok: true},
	} {
		for _, opt := range []SharedOption{WithMaxLease(20), WithStrict()} {
			synctest.Test(t, func(t *testing.T) {
				store := &strangeStore{Store: newMemoryStore(t, 16)}
				s := sluice.Must(NewShared("api", store, Global(PerMinute(100)), opt, WithFailure(FailClosed)))
				answer := func() (Grant, error) { return tc.g, nil }
				store.instead.Store(&answer)
				d := s.Take(1)
				assert.Equal(t, tc.ok, d.OK(), name)
				assert.Equal(t, tc.failed, s.Snapshot().Node.Store.Failures == 1, name)
				assert.Equal(t, tc.ok, d.RetryAfter() == 0, name)
				for _, x := range []int64{d.Remaining(), int64(d.RetryAfter()), int64(d.ResetAfter()), s.Snapshot().Held, s.Snapshot().Remaining} {
					assert.GreaterOrEqual(t, x, int64(0), name)
				}
				assert.LessOrEqual(t, d.Remaining(), int64(100), name)
				assert.LessOrEqual(t, s.Snapshot().Held, int64(20), name)
				assert.Zero(t, s.ledger.pending, name)

				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := clock.Now()
				assert.Error(t, s.WaitN(ctx, 2), name)
				assert.Equal(t, began, clock.Now(), "nobody sleeps for what does not come: %v", name)
			})
		}
	}
}

// A guard that makes no call has not found out anything.
func TestShared_AGuardThatMakesNoCall(t *testing.T) {
	idle := guardFunc(func(context.Context, func(context.Context) error) error { return nil })
	s := sluice.Must(NewShared("api", newMemoryStore(t, 16), Global(PerMinute(100)), WithStrict(), WithStoreGuard(idle), WithFailure(FailClosed)))
	assert.ErrorIs(t, s.Take(1).Err(), ErrStore)
	assert.EqualValues(t, 1, s.Snapshot().Node.Store.Failures)
}

// Whoever ends the goroutine of a caller within the store or its guard must not leave
// the account behind as if the call went on for ever.
func TestShared_AStoreThatDoesNotReturn(t *testing.T) {
	for name, end := range map[string]func(){"Goexit": runtime.Goexit, "panic": func() { panic("out of order") }} {
		for _, inGuard := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var broken atomic.Bool
				store := &strangeStore{Store: newMemoryStore(t, 16)}
				answer := func() (Grant, error) {
					if broken.Load() && !inGuard {
						end()
					}
					return store.Store.Take(t.Context(), StoreKey{"api", ""}, Quota{PerMinute(100), 100}, Ask{1, 1, 0})
				}
				store.instead.Store(&answer)
				guard := guardFunc(func(ctx context.Context, call func(context.Context) error) error {
					if broken.Load() && inGuard {
						end()
					}
					return call(ctx)
				})
				opts := []SharedOption{WithMaxLease(20), WithFailure(FailClosed)}
				if inGuard {
					opts = append(opts, WithStoreGuard(guard))
				}
				s := sluice.Must(NewShared("api", store, Global(PerMinute(100)), opts...))
				broken.Store(true)
				for range maxFailures {
					aside(func() { s.Allow() })
				}
				assert.EqualValues(t, maxFailures, s.Snapshot().Node.Store.Failures, name)
				s.node.learn(s.node.cur.Load(), errand{kind: taking, try: s.node.look(s.key, s.current().quota)}, sluice.ErrRejected)
				require.Equal(t, ModeFallback, s.Snapshot().Node.Mode, name)
				for range 3 { // each finds out once for all
					time.Sleep(time.Minute)
					aside(func() { s.Allow() })
				}
				broken.Store(false)
				time.Sleep(time.Minute)
				assert.True(t, s.Allow(), name)
				assert.Equal(t, ModeShared, s.Snapshot().Node.Mode, name)
				assert.Zero(t, s.ledger.pending, name)
			})
		}
	}
}

func TestShared_RunOutlivesAStoreThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &strangeStore{Store: newMemoryStore(t, 16)}
		s := sluice.Must(NewShared("api", store, Global(PerSecond(100)), WithMaxLease(20), WithNodeTTL(time.Second)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = s.Run(ctx)
		}()
		synctest.Wait()
		end := func() (Grant, error) {
			runtime.Goexit()
			return Grant{}, nil
		}
		for _, f := range []*func() (Grant, error){nil, &end, nil} {
			store.instead.Store(f)
			for range 1000 {
				aside(func() { s.Allow() })
				time.Sleep(10 * time.Millisecond)
			}
		}
		time.Sleep(maxPause)
		assert.Equal(t, ModeShared, s.Snapshot().Node.Mode)
		cancel()
		<-ended
	})
}

// The second of two debits that cannot be larger made the debt negative, which every
// store refuses; so the limiter fell back for good.
func TestShared_DebtsDoNotOverflow(t *testing.T) {
	s := newStill(t, 1, Global(PerMinute(60)), WithStoreTimeout(time.Minute)).nodes[0]
	s.node.running.Store(true) // and has not come yet
	for range 2 {
		s.Debit(math.MaxInt64)
	}
	assert.EqualValues(t, 120, s.Snapshot().Owed)
	s.visit(t.Context())
	assert.Zero(t, s.Snapshot().Owed)
	assert.Zero(t, s.Snapshot().Node.Store.Failures)
	assert.Positive(t, s.Snapshot().Node.Totals.Tokens)
}

// Between Run's last look at an account and its taking it off the list, somebody put a
// token into the lease and saw it listed; so nobody returned that any more.
func TestRun_OverlooksNobodyItLetsGo(t *testing.T) {
	for name, meanwhile := range map[string]func(*Shared){
		"a token in the lease":     func(s *Shared) { s.deposit(1) },
		"a wish":                   func(s *Shared) { s.hunger(s.current(), 1) },
		"one without the store":    func(s *Shared) { s.owe(1) },
		"nothing, and it stays so": func(*Shared) {},
	} {
		s := sluice.Must(NewShared("api", newMemoryStore(t, 16), Global(PerMinute(100)), WithMaxLease(20)))
		s.node.running.Store(true)
		r := &runner{node: s.node, config: s.Config}
		r.agenda.set(&s.account, 1)
		a := r.agenda.take(1)
		a.visiting, r.busy = true, 1
		due := a.visit(t.Context())
		require.Zero(t, due)
		meanwhile(s)
		r.finish(visited{account: a, due: due})
		r.admit()
		assert.Equal(t, name != "nothing, and it stays so", len(r.agenda) == 1, name)
	}
}

// A token that came back into a lease when the store had refused more stayed there until
// the store was to be asked again, here an hour, though all others were refused.
func TestShared_ALeaseGoesBackWhileTheStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, Global(PerHour(1)), WithBurst(100), WithMaxLease(20))
		s := f.nodes[0]
		var leased []Decision
		for {
			d := s.Take(1)
			if !d.OK() && d.RetryAfter() > time.Minute {
				break
			}
			if _, ok := d.by.judge.(*terms); ok && d.OK() {
				leased = append(leased, d)
			}
			time.Sleep(time.Millisecond)
		}
		require.Zero(t, f.left())
		require.NotEmpty(t, leased)
		s.Refund(leased[0])
		require.EqualValues(t, 1, s.Snapshot().Held)
		time.Sleep(2 * time.Second)
		assert.Zero(t, s.Snapshot().Held)
		assert.EqualValues(t, 1, f.left())
	})
}
