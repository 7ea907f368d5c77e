package breaker

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Listeners ran under the lock, and the first one that asked the breaker for its
// state hung: https://github.com/sony/gobreaker/pull/119. Outside the lock but
// unordered was no better: https://github.com/gastownhall/gascity/pull/4839.
func TestT16_ListenerMayCallItsBreaker(t *testing.T) {
	var b *Breaker
	var heard []State
	b = build(t, WithErrorCount(1), WithOnChange(func(e Event) {
		heard = append(heard, e.To)
		assert.Equal(t, e.To, b.State())
		assert.Equal(t, e.To, b.Snapshot().State)
		assert.Equal(t, e.Generation, b.Snapshot().Generation)
		switch len(heard) {
		case 1: // open
			assert.ErrorIs(t, b.Do(t.Context(), func(context.Context) error { return nil }), ErrOpen)
			assert.NoError(t, b.Force(ForcedClosed, 0))
			assert.NoError(t, b.Do(t.Context(), func(context.Context) error { return nil }))
			b.Unforce()
			b.Reset()
		case 2: // closed
			assert.NoError(t, b.Do(t.Context(), func(context.Context) error { return nil }))
			assert.NoError(t, b.Update(b.Config()))
		}
	}))
	assert.ErrorIs(t, b.Do(t.Context(), func(context.Context) error { return errDown }), errDown)
	assert.Equal(t, []State{Open, Closed}, heard)
}

// 16 goroutines flap at once, and what the listener hears is still one story.
// Each round stays under what may wait behind a listener.
func TestT16_EventsChainWhoeverCausesThem(t *testing.T) {
	var events []Event // appended by one listener at a time
	b := build(t, WithOnChange(func(e Event) { events = append(events, e) }))
	for range 10 {
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 15 {
					assert.NoError(t, b.Trip(time.Hour))
					b.Reset()
				}
			})
		}
		wg.Wait()
		require.NotEmpty(t, events)
		require.Equal(t, b.State(), events[len(events)-1].To)
	}
	from, generation := Closed, uint64(1)
	for i, e := range events {
		require.Equalf(t, from, e.From, "event %d", i)
		require.NotEqualf(t, e.From, e.To, "event %d", i)
		require.Equalf(t, generation+1, e.Generation, "event %d", i)
		from, generation = e.To, e.Generation
	}
	assert.Zero(t, b.Snapshot().Dropped)
}

// More than may wait: the oldest are dropped and counted, what arrives is in
// order, and the newest is among it.
func TestT16_SlowListenerLosesTheOldestAndIsTold(t *testing.T) {
	const changes, waiting = 3000, 1024
	held, enough := make(chan struct{}), make(chan struct{})
	var events []Event
	b := build(t, WithOnChange(func(e Event) {
		if len(events) == 0 {
			close(held)
			<-enough
		}
		events = append(events, e)
	}))
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, b.Trip(time.Hour)) })
	<-held
	for i := 1; i < changes; i++ {
		if i%2 == 1 {
			b.Reset()
		} else {
			require.NoError(t, b.Trip(time.Hour))
		}
	}
	close(enough)
	wg.Wait()
	require.Len(t, events, 1+waiting)
	assert.EqualValues(t, changes-1-waiting, b.Snapshot().Dropped)
	for i := 1; i < len(events); i++ {
		require.Greater(t, events[i].Generation, events[i-1].Generation)
	}
	assert.Equal(t, b.Snapshot().Generation, events[len(events)-1].Generation)
}

// A listener that panics or ends its goroutine does it once, and later events
// still arrive.
func TestT16_ListenerThatPanicsOrExitsWedgesNothing(t *testing.T) {
	var heard []State
	b := build(t, WithErrorCount(1), WithOnChange(func(e Event) {
		switch heard = append(heard, e.To); len(heard) {
		case 1:
			panic("a listener fails")
		case 2:
			runtime.Goexit()
		}
	}))
	require.NotPanics(t, func() {
		assert.ErrorIs(t, b.Do(t.Context(), func(context.Context) error { return errDown }), errDown)
	}, "it must not end a stranger's call")
	wait(b.Reset) // this goroutine ends
	require.NoError(t, b.Trip(time.Hour))
	b.Reset()
	assert.Equal(t, []State{Open, Closed, Open, Closed}, heard)
	assert.EqualValues(t, 1, b.Snapshot().Panics)
}

// One listener that fails keeps nothing from the others.
func TestT16_ListenersAreIndependent(t *testing.T) {
	var second, third []State
	b := build(t, WithErrorCount(1),
		WithOnChange(func(e Event) {
			if e.To == Open {
				panic("a listener fails")
			}
			runtime.Goexit()
		}),
		WithOnChange(func(e Event) { second = append(second, e.To); panic("and another") }),
		WithOnChange(func(e Event) { third = append(third, e.To) }),
	)
	wait(func() { _ = b.Do(t.Context(), failing) })
	wait(b.Reset)
	assert.Equal(t, []State{Open, Closed}, second)
	assert.Equal(t, []State{Open, Closed}, third)
}

// While a listener is at it, calls and changes go on.
func TestT16_ListenerHoldsNobodyUp(t *testing.T) {
	held, enough := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b := build(t, WithErrorCount(1), WithOnChange(func(Event) {
		once.Do(func() { close(held); <-enough })
	}))
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, b.Trip(time.Hour)) })
	<-held
	assert.ErrorIs(t, b.Do(t.Context(), func(context.Context) error { return nil }), ErrOpen)
	b.Reset()
	assert.NoError(t, b.Do(t.Context(), func(context.Context) error { return nil }))
	assert.ErrorIs(t, b.Do(t.Context(), func(context.Context) error { return errDown }), errDown)
	assert.Equal(t, Open, b.State())
	close(enough)
	wg.Wait()
}

// An event tells the whole story: who, from where to where, why, for how long,
// and whose call it was.
func TestS21_EventTellsTheWholeStory(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "trace 7")
	s := newStory(t, WithErrorCount(2, OpenFor(7*time.Second)))
	for range 2 {
		p, err := s.b.allow(ctx, t0)
		require.NoError(t, err)
		p.done(t0, errDown)
	}
	s.tell(step{7, S, Closed}, step{8, tripped(3 * time.Second), Open}, step{9, reset, Closed})
	require.Len(t, s.events, 5)
	for i, e := range s.events {
		assert.Equal(t, "payments", e.Name)
		assert.EqualValues(t, s.events[0].Generation+uint64(i), e.Generation)
		assert.False(t, e.Time.IsZero())
		require.NotNil(t, e.Ctx)
	}
	opened, half, closing, trip, reset := s.events[0], s.events[1], s.events[2], s.events[3], s.events[4]
	assert.Equal(t, Cause{Reason: RuleTripped, Rule: Rule{Kind: ErrorCount, Count: 2, OpenFor: 7 * time.Second}, Bad: 2, Total: 2}, opened.Cause)
	assert.Equal(t, 7*time.Second, opened.OpenFor)
	assert.Equal(t, "trace 7", opened.Ctx.Value(key{}))
	assert.Equal(t, DeadlinePassed, half.Cause.Reason)
	assert.Equal(t, ProbesPassed, closing.Cause.Reason)
	assert.Equal(t, TripRequested, trip.Cause.Reason)
	assert.Equal(t, 3*time.Second, trip.OpenFor)
	assert.Equal(t, ResetRequested, reset.Cause.Reason)
}
