package ratelimit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/internal/clock"
)

// A wire is a Store that is reached over a network, which can be slow or down.
type wire struct {
	Store
	delay atomic.Int64 // of each answer
	down  atomic.Bool  // calls are refused at once
	mute  atomic.Bool  // calls get no answer

	takes, refunds, debits, beats atomic.Int64
	debited                       atomic.Int64 // tokens
}

var errStoreDown = errors.New("connection refused")

func newWire(t *testing.T) *wire { return &wire{Store: newMemoryStore(t, 1<<16)} }

func (w *wire) reach(ctx context.Context) error {
	switch {
	case w.mute.Load():
		<-ctx.Done()
	case w.down.Load():
		return errStoreDown
	case w.delay.Load() > 0:
		return sleep(ctx, time.Duration(w.delay.Load()))
	}
	return ctx.Err()
}

func (w *wire) Take(ctx context.Context, key StoreKey, q Quota, ask Ask) (Grant, error) {
	w.takes.Add(1)
	if err := w.reach(ctx); err != nil {
		return Grant{}, err
	}
	return w.Store.Take(ctx, key, q, ask)
}

func (w *wire) Refund(ctx context.Context, key StoreKey, q Quota, r Receipt, n int64) error {
	w.refunds.Add(1)
	if err := w.reach(ctx); err != nil {
		return err
	}
	return w.Store.Refund(ctx, key, q, r, n)
}

func (w *wire) Debit(ctx context.Context, key StoreKey, q Quota, n int64) error {
	w.debits.Add(1)
	if err := w.reach(ctx); err != nil {
		return err
	}
	w.debited.Add(n)
	return w.Store.Debit(ctx, key, q, n)
}

func (w *wire) Beat(ctx context.Context, limiter, node string, ttl time.Duration) (int64, error) {
	w.beats.Add(1)
	if err := w.reach(ctx); err != nil {
		return 0, err
	}
	return w.Store.Beat(ctx, limiter, node, ttl)
}

// A fleet is nodes that share a limit, in one process and one bubble.
type fleet struct {
	t     *testing.T
	wire  *wire
	nodes []*Shared
	stop  func() // ends every Run, and waits for them

	mu       sync.Mutex
	admitted []int64 // when, one for each token
	waited   int     // answers that took time
	asked    int
}

// newStill returns n nodes that do not run.
func newStill(t *testing.T, n int, th Threshold, opts ...SharedOption) *fleet {
	f := &fleet{t: t, wire: newWire(t)}
	for range n {
		s, err := NewShared("api", f.wire, th, opts...)
		require.NoError(t, err)
		f.nodes = append(f.nodes, s)
	}
	return f
}

// newFleet returns n nodes that run until the bubble ends.
func newFleet(t *testing.T, n int, th Threshold, opts ...SharedOption) *fleet {
	f := newStill(t, n, th, opts...)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, s := range f.nodes {
		running.Go(func() { _ = s.Run(ctx) })
	}
	f.stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(f.stop)
	synctest.Wait() // all have beaten
	for range 2 {   // and know of one another
		time.Sleep(4 * time.Second)
	}
	return f
}

// flood asks for n tokens every so often at each of the nodes, for a time.
func (f *fleet) flood(nodes []*Shared, n int64, every, length time.Duration) {
	var all sync.WaitGroup
	for i, s := range nodes {
		all.Go(func() {
			time.Sleep(every * time.Duration(i) / time.Duration(len(nodes)))
			for end := clock.Now() + int64(length); clock.Now() < end; time.Sleep(every) {
				f.ask(s, n)
			}
		})
	}
	all.Wait()
}

func (f *fleet) ask(s *Shared, n int64) Decision {
	began := clock.Now()
	d := s.Take(n)
	now := clock.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if now > began {
		f.waited++
	}
	if d.OK() {
		for range n {
			f.admitted = append(f.admitted, now)
		}
	}
	return d
}

// most is how many tokens were admitted at most in any time w, the ends included.
func (f *fleet) most(w time.Duration) (most int) {
	slices.Sort(f.admitted)
	first := 0
	for last, at := range f.admitted {
		for at-f.admitted[first] > int64(w) {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// since returns how many were admitted since then, and forgets all.
func (f *fleet) take() (admitted int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	admitted = len(f.admitted)
	f.admitted, f.waited, f.asked = nil, 0, 0
	return admitted
}

// bounds checks burst + rate × w + more for several w.
func (f *fleet) bounds(r Rate, burst, more int64) {
	f.t.Helper()
	for _, w := range []time.Duration{0, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second, time.Minute} {
		require.LessOrEqual(f.t, int64(f.most(w)), burst+r.within(w)+more, "in %v", w)
	}
}
