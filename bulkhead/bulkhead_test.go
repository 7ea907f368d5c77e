package bulkhead

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

var errDown = errors.New("down")

func build(t *testing.T, limit int, opts ...Option) *Bulkhead {
	t.Helper()
	b, err := New("payments", limit, opts...)
	require.NoError(t, err)
	return b
}

// fill takes n places, and returns what gives them back, one at a time.
func fill(t *testing.T, b *Bulkhead, n int) (free func()) {
	t.Helper()
	permits := make([]Permit, n)
	for i := range permits {
		p, err := b.TryAcquire(t.Context())
		require.NoError(t, err)
		permits[i].bulkhead, permits[i].n = p.bulkhead, p.n
	}
	return func() {
		permits[0].Close()
		permits = permits[1:]
	}
}

// journal is what several goroutines noted, in order.
type journal[T any] struct {
	mu    sync.Mutex
	notes []T
}

func (j *journal[T]) add(note T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notes = append(j.notes, note)
}

func (j *journal[T]) read() []T {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.notes)
}

// reasonFor checks that err is a refusal in every respect, and returns its reason.
func reasonFor(t *testing.T, err error) string {
	t.Helper()
	require.ErrorIs(t, err, ErrFull)
	require.ErrorIs(t, err, sluice.ErrRejected)
	full, ok := errors.AsType[*FullError](err)
	require.True(t, ok)
	rejection, ok := errors.AsType[sluice.Rejection](err)
	require.True(t, ok)
	assert.Equal(t, full.Reason() == ReasonClosed, errors.Is(err, ErrClosed))
	assert.Equal(t, full.Reason() == ReasonExceedsCapacity, errors.Is(err, ErrExceedsCapacity))
	assert.NotErrorIs(t, err, context.DeadlineExceeded)
	return rejection.Reason()
}

func TestBulkhead_AdmitsAsManyAsItsLimit(t *testing.T) {
	b := build(t, 3)
	free := fill(t, b, 3)
	for _, ask := range []func(context.Context) (Permit, error){b.Acquire, b.TryAcquire} {
		_, err := ask(t.Context())
		assert.Equal(t, ReasonFull, reasonFor(t, err))
		assert.EqualError(t, err, `bulkhead "payments": full`)
	}
	free()
	p, err := b.Acquire(t.Context())
	require.NoError(t, err)
	_, err = b.Acquire(t.Context())
	assert.Equal(t, ReasonFull, reasonFor(t, err))
	p.Close()
	assert.Equal(t, 2, b.Snapshot().InFlight)
}

func TestBulkhead_Weights(t *testing.T) {
	b := build(t, 10)
	p, err := b.AcquireN(t.Context(), 7)
	require.NoError(t, err)
	_, err = b.TryAcquireN(t.Context(), 4)
	assert.Equal(t, ReasonFull, reasonFor(t, err))
	q, err := b.TryAcquireN(t.Context(), 3)
	require.NoError(t, err)
	assert.Equal(t, 10, b.Snapshot().InFlight)
	p.Close()
	assert.Equal(t, 3, b.Snapshot().InFlight)
	q.Close()
	assert.Zero(t, b.Snapshot().InFlight)
}

// https://github.com/golang/go/issues/80183: a negative n corrupts a semaphore. And
// what is larger than the whole waits for ever in one.
func TestScenario29_ImpossibleNumbersAreRefusedAtOnce(t *testing.T) {
	b := build(t, 10, WithQueue(10, math.MaxInt64))
	for _, ask := range []func(context.Context, int) (Permit, error){b.AcquireN, b.TryAcquireN} {
		for _, n := range []int{0, -1, math.MinInt} {
			_, err := ask(t.Context(), n)
			require.ErrorContains(t, err, `bulkhead "payments": `)
			require.ErrorContains(t, err, "at least 1 is wanted")
			assert.NotErrorIs(t, err, sluice.ErrRejected, "it is a mistake, not a refusal")
		}
		for _, n := range []int{11, math.MaxInt} {
			_, err := ask(t.Context(), n)
			assert.Equal(t, ReasonExceedsCapacity, reasonFor(t, err))
			wait, ok := sluice.RetryAfter(err)
			assert.True(t, ok)
			assert.Negative(t, wait, "never")
		}
	}
	free := fill(t, b, 10)
	for _, n := range []int{11, math.MaxInt} {
		_, err := b.AcquireN(t.Context(), n)
		assert.Equal(t, ReasonExceedsCapacity, reasonFor(t, err))
	}
	free()
	assert.Equal(t, 9, b.Snapshot().InFlight)
}

func TestBulkhead_NobodyAsksForATimeThatNobodyKnows(t *testing.T) {
	b := build(t, 0)
	_, err := b.Acquire(t.Context())
	assert.Equal(t, ReasonClosed, reasonFor(t, err))
	_, ok := sluice.RetryAfter(err)
	assert.False(t, ok, "it may be opened again")
}

// However it is settled, and however often, a permit gives back what it took, once.
func TestPermit_SettlesOnce(t *testing.T) {
	settlings := map[string]func(p *Permit){
		"Done":   func(p *Permit) { p.Done(nil) },
		"failed": func(p *Permit) { p.Done(errDown) },
		"Settle": func(p *Permit) { p.Settle(sluice.Throttled) },
		"Cancel": func(p *Permit) { p.Cancel() },
		"Close":  func(p *Permit) { p.Close() },
	}
	for first, settle := range settlings {
		for second, again := range settlings {
			b := build(t, 5)
			other, err := b.AcquireN(t.Context(), 3)
			require.NoError(t, err)
			p, err := b.AcquireN(t.Context(), 2)
			require.NoError(t, err)
			settle(&p)
			again(&p)
			assert.Equalf(t, 3, b.Snapshot().InFlight, "%s, then %s", first, second)
			other.Close()
		}
	}
	for name, settle := range settlings {
		assert.NotPanics(t, func() { settle(new(Permit)) }, name)
	}
}

func TestBulkhead_Do(t *testing.T) {
	b := build(t, 1)
	err := b.Do(t.Context(), func(ctx context.Context) error {
		assert.Equal(t, 1, b.Snapshot().InFlight)
		inner := b.Do(ctx, func(context.Context) error { t.Error("it is full"); return nil })
		assert.Equal(t, ReasonFull, reasonFor(t, inner))
		return errDown
	})
	assert.Same(t, errDown, err)
	assert.Zero(t, b.Snapshot().InFlight)
}

func TestLaw4_EveryAdmissionEnds(t *testing.T) {
	b := build(t, 1)
	assert.PanicsWithValue(t, "boom", func() {
		_ = b.Do(t.Context(), func(context.Context) error { panic("boom") })
	})
	assert.Zero(t, b.Snapshot().InFlight, "after a panic")

	var wg sync.WaitGroup
	wg.Go(func() {
		_ = b.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
	})
	wg.Wait()
	assert.Zero(t, b.Snapshot().InFlight, "after the end of the goroutine")
}

// Of 1000 calls with a ctx that was done, failsafe-go's bulkhead gave 504 a permit:
// a select takes what is ready at random.
func TestLaw6_ACtxThatIsDoneTakesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := build(t, 5, WithQueue(5, time.Hour))
	for range 1000 {
		for _, ask := range []func(context.Context) (Permit, error){b.Acquire, b.TryAcquire} {
			_, err := ask(ctx)
			require.Equal(t, context.Canceled, err)
		}
	}
	err := b.Do(ctx, func(context.Context) error { t.Error("not called"); return nil })
	assert.Equal(t, context.Canceled, err)
	assert.Zero(t, b.Snapshot().Totals)
}

func TestBulkhead_TheNilBulkheadLetsEverythingPass(t *testing.T) {
	var b *Bulkhead
	for _, ask := range []func() (Permit, error){
		func() (Permit, error) { return b.Acquire(t.Context()) },
		func() (Permit, error) { return b.TryAcquire(t.Context()) },
		func() (Permit, error) { return b.AcquireN(t.Context(), math.MaxInt) },
		func() (Permit, error) { return b.TryAcquireN(t.Context(), -1) },
	} {
		p, err := ask()
		require.NoError(t, err)
		p.Done(nil)
	}
	assert.Same(t, errDown, b.Do(t.Context(), func(context.Context) error { return errDown }))
	v, err := sluice.Call(t.Context(), b, func(context.Context) (int, error) { return 42, nil })
	assert.NoError(t, err)
	assert.Equal(t, 42, v)
	assert.Empty(t, b.Name())
	assert.Zero(t, b.Snapshot())
	assert.Zero(t, b.Config())
	assert.NoError(t, b.SetLimit(5))
	assert.NoError(t, b.Update(build(t, 1).Config()))
	assert.Error(t, b.Update(Config{}))
	b.Collect(nil)
}
