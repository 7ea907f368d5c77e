package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// ways are the shapes of Guard that Call tells apart. Each lets a call pass whose
// guard named "a" admits.
var ways = map[string]func(j *journal, a act) sluice.Guard{
	"a stage":            func(j *journal, a act) sluice.Guard { return j.toll("a", a) },
	"a foreign guard":    func(j *journal, a act) sluice.Guard { return j.foreign("a", a) },
	"a chain of stages":  func(j *journal, a act) sluice.Guard { return sluice.Chain(j.toll("x"), j.toll("a", a)) },
	"a chain of foreign": func(j *journal, a act) sluice.Guard { return sluice.Chain(j.foreign("x"), j.foreign("a", a)) },
	"a mixed chain":      func(j *journal, a act) sluice.Guard { return sluice.Chain(j.toll("x"), j.foreign("y"), j.toll("a", a)) },
	"a long chain": func(j *journal, a act) sluice.Guard {
		return sluice.Chain(j.toll("x"), j.toll("x"), j.toll("x"), j.toll("x"), j.toll("x"), j.toll("a", a))
	},
}

func TestCall_ReturnsWhatTheCallReturns(t *testing.T) {
	ways := map[string]func(*journal, act) sluice.Guard{
		"no guard":       func(*journal, act) sluice.Guard { return nil },
		"a nil stage":    func(*journal, act) sluice.Guard { return (*toll)(nil) },
		"a nil foreign":  func(*journal, act) sluice.Guard { return (*foreign)(nil) },
		"an empty chain": func(*journal, act) sluice.Guard { return sluice.Chain() },
	}
	for name, guard := range allWays(ways) {
		t.Run(name, func(t *testing.T) {
			v, err := sluice.Call(t.Context(), guard(&journal{}, pass), func(context.Context) (string, error) { return "spoon", nil })
			require.NoError(t, err)
			assert.Equal(t, "spoon", v)

			v, err = sluice.Call(t.Context(), guard(&journal{}, pass), func(context.Context) (string, error) { return "half a spoon", errDown })
			assert.Same(t, errDown, err, "the error as it is")
			assert.Equal(t, "half a spoon", v, "with what came with it")

			for a, how := range map[act]string{panics: "panicked: call", exits: "exited"} {
				j := &journal{}
				assert.Equal(t, how, ending(func() {
					_, _ = sluice.Call(t.Context(), guard(&journal{}, pass), func(ctx context.Context) (int, error) {
						return 0, j.doing(a)(ctx)
					})
				}))
				assert.Equal(t, []string{"call", "call " + a.String()}, j.lines, "it ran once")
			}
		})
	}
}

// allWays returns ways and more.
func allWays(more map[string]func(*journal, act) sluice.Guard) map[string]func(*journal, act) sluice.Guard {
	for name, guard := range ways {
		more[name] = guard
	}
	return more
}

func TestCall_ARefusalReturnsTheZeroValue(t *testing.T) {
	for name, guard := range ways {
		t.Run(name, func(t *testing.T) {
			j := &journal{}
			v, err := sluice.Call(t.Context(), guard(j, refuse), func(context.Context) (string, error) {
				j.write("call", "is made")
				return "spoon", nil
			})
			assert.Zero(t, v)
			require.ErrorIs(t, err, sluice.ErrRejected)
			var r sluice.Rejection
			require.ErrorAs(t, err, &r)
			assert.Equal(t, "a", r.Resource())
			assert.Same(t, r, err, "the guard's error as it is")
			assert.NotContains(t, j.lines, "call is made")
		})
	}
}

// One stage needs no chain: it is driven in two steps all the same.
func TestCall_RunsAStageInTwoSteps(t *testing.T) {
	for _, c := range []struct {
		stage, call act
		how         string
		want        []string
	}{
		{pass, pass, "returned", []string{"a admits at 0s", "call at 0s", "a settles: ok at 1h0m0s"}},
		{pass, fails, "returned", []string{"a admits at 0s", "call at 0s", "call fails", "a settles: connection refused at 1h0m0s"}},
		{pass, panics, "panicked: call", []string{"a admits at 0s", "call at 0s", "call panics", "a settles: cut off at 1h0m0s"}},
		{pass, exits, "exited", []string{"a admits at 0s", "call at 0s", "call exits", "a settles: cut off at 1h0m0s"}},
		{refuse, pass, "returned", []string{"a refuses"}},
		{panics, pass, "panicked: a", []string{"a panics"}},
		{exits, pass, "exited", []string{"a exits"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			j := &journal{began: clock.Now()}
			assert.Equal(t, c.how, ending(func() {
				_ = callThrough(t.Context(), j.toll("a", c.stage), j.doing(c.call))
			}))
			assert.Equal(t, c.want, j.lines)
		})
	}
}

func TestCall_AStageThatSettlesBadlyIsToldOnce(t *testing.T) {
	for a, how := range map[act]string{panics: "panicked: a", exits: "exited"} {
		j := &journal{}
		assert.Equal(t, how, ending(func() { _ = callThrough(t.Context(), j.toll("a", pass, a), j.doing(pass)) }))
		assert.Equal(t, []string{"a admits", "call", "a settles: ok", "a " + a.String()}, j.lines)
	}
}

func TestCall_MarksAProbeForTheCall(t *testing.T) {
	j := &journal{}
	probing := j.toll("a")
	probing.probe = true
	require.NoError(t, callThrough(t.Context(), probing, j.doing(pass)))
	probing.probe = false
	require.NoError(t, callThrough(t.Context(), probing, j.doing(pass)))
	assert.Equal(t, []string{"a admits", "call a probe", "a settles: ok", "a admits", "call", "a settles: ok"}, j.lines)
}

// A foreign guard that calls again returns what the last call returned.
func TestCall_KeepsTheResultOfTheLastAttempt(t *testing.T) {
	for name, chained := range map[string]func(sluice.Guard, *journal) sluice.Guard{
		"alone": func(retry sluice.Guard, _ *journal) sluice.Guard { return retry },
		"in a chain": func(retry sluice.Guard, j *journal) sluice.Guard {
			return sluice.Chain(j.toll("a"), retry, j.toll("b"))
		},
	} {
		j := &journal{}
		retry := j.foreign("retry")
		retry.retries = true
		attempts := 0
		v, err := sluice.Call(t.Context(), chained(retry, j), func(context.Context) (int, error) {
			attempts++
			if attempts == 1 {
				return -1, errDown
			}
			return 12, nil
		})
		require.NoError(t, err, name)
		assert.Equal(t, 12, v, name)
		assert.Equal(t, 2, attempts, name)
	}
}

// A Guard may run the call where it likes, as long as it is back before Do returns.
func TestCall_AGuardMayUseAnotherGoroutine(t *testing.T) {
	v, err := sluice.Call(t.Context(), sluice.Chain(elsewhere{}, (&journal{}).toll("a")), func(context.Context) (int, error) {
		time.Sleep(time.Millisecond)
		return 12, nil
	})
	require.NoError(t, err)
	assert.Equal(t, 12, v)
}

type elsewhere struct{}

func (elsewhere) Do(ctx context.Context, call func(context.Context) error) error {
	done := make(chan error)
	go func() { done <- call(ctx) }()
	return <-done
}

func TestCallOr_FallsBackOnRefusalAndOnFailure(t *testing.T) {
	for name, guard := range ways {
		t.Run(name, func(t *testing.T) {
			spoons := func(context.Context) (int, error) { return 12, nil }
			none := func(context.Context) (int, error) { return 3, errDown }
			ctx := context.WithValue(t.Context(), keyOf{}, "caller")
			var causes []error
			guess := func(given context.Context, cause error) (int, error) {
				assert.Equal(t, ctx, given, "the fallback runs outside the guard")
				causes = append(causes, cause)
				return 1, nil
			}

			v, err := sluice.CallOr(ctx, guard(&journal{}, pass), spoons, guess)
			require.NoError(t, err)
			assert.Equal(t, 12, v)
			assert.Empty(t, causes, "a success needs no fallback")

			v, err = sluice.CallOr(ctx, guard(&journal{}, pass), none, guess)
			require.NoError(t, err)
			assert.Equal(t, 1, v)
			require.Len(t, causes, 1)
			assert.Same(t, errDown, causes[0])

			j := &journal{}
			v, err = sluice.CallOr(ctx, guard(j, refuse), spoons, guess)
			require.NoError(t, err)
			assert.Equal(t, 1, v)
			require.Len(t, causes, 2)
			require.ErrorIs(t, causes[1], sluice.ErrRejected)
			assert.NotContains(t, j.lines, "a settles: ok", "what the fallback does is not counted")
		})
	}
}

func TestCallOr_ReturnsWhatTheFallbackReturns(t *testing.T) {
	guard := (&journal{}).toll("a")
	none := func(context.Context) (int, error) { return 3, errDown }

	v, err := sluice.CallOr(t.Context(), guard, none, func(_ context.Context, cause error) (int, error) { return 0, cause })
	assert.Same(t, errDown, err, "a fallback that has nothing returns the cause")
	assert.Zero(t, v)

	errCold := errors.New("cache is cold")
	v, err = sluice.CallOr(t.Context(), guard, none, func(_ context.Context, cause error) (int, error) {
		return 5, fmt.Errorf("%w, %w", cause, errCold)
	})
	require.ErrorIs(t, err, errDown)
	require.ErrorIs(t, err, errCold)
	assert.Equal(t, 5, v)

	v, err = sluice.CallOr(t.Context(), nil, none, func(context.Context, error) (int, error) { return 7, nil })
	require.NoError(t, err, "without a guard as well")
	assert.Equal(t, 7, v)
}

func TestCallOr_DoesNotFallBackOnAPanic(t *testing.T) {
	for a, how := range map[act]string{panics: "panicked: call", exits: "exited"} {
		j := &journal{}
		assert.Equal(t, how, ending(func() {
			_, _ = sluice.CallOr(t.Context(), j.toll("a"),
				func(ctx context.Context) (int, error) { return 0, j.doing(a)(ctx) },
				func(context.Context, error) (int, error) { j.write("fallback", "runs"); return 0, nil })
		}))
		assert.Equal(t, []string{"a admits", "call", "call " + a.String(), "a settles: cut off"}, j.lines)
	}
}

func TestMust(t *testing.T) {
	assert.Equal(t, 12, sluice.Must(12, nil))
	assert.PanicsWithValue(t, errDown, func() { sluice.Must(12, errDown) })
}

// patient is a stage that waits for a place until the caller's ctx ends.
type patient struct{}

func (p *patient) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	<-ctx.Done()
	return stage.Ticket{}, ctx.Err()
}
func (p *patient) Settle(stage.Ticket, context.Context, int64, error, bool) { panic("it took nothing") }
func (p *patient) Do(context.Context, func(context.Context) error) error    { panic("run in two steps") }

// witness is a stage that keeps what it was told.
type witness struct{ told []error }

func (w *witness) Admit(_ context.Context, now int64) (stage.Ticket, error) {
	return stage.Ticket{At: now}, nil
}
func (w *witness) Settle(_ stage.Ticket, _ context.Context, _ int64, err error, completed bool) {
	w.told = append(w.told, err)
}
func (w *witness) Do(context.Context, func(context.Context) error) error { panic("run in two steps") }

// A call whose ctx ended while a guard further in still waited for a place was not
// made, so the guards around must not take it for a call that timed out.
func TestChain_AnEndWhileWaitingIsARefusalToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var outer witness
		err := sluice.Chain(&outer, &patient{}).Do(ctx, func(context.Context) error {
			t.Error("not reached")
			return nil
		})
		assert.Equal(t, context.DeadlineExceeded, err, "the caller gets the error as it is")
		require.Len(t, outer.told, 1)
		assert.ErrorIs(t, outer.told[0], sluice.ErrRejected)
		assert.ErrorIs(t, outer.told[0], context.DeadlineExceeded)
		assert.Equal(t, sluice.Ignored, sluice.Classify(ctx, outer.told[0]))
	})
}
