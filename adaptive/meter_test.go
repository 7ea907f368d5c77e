package adaptive

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A Meter leaves the limit to the call and learns from it, alone and in a chain.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := sluice.Must(NewTimeout("db", ms, time.Second, WithInitial(100*ms)))
		for name, guard := range map[string]sluice.Guard{"alone": to.Meter(), "in a chain": sluice.Chain(to.Meter(), to.Meter())} {
			before := to.Snapshot().Totals
			ask := func(took time.Duration, fail error) error {
				_, err := sluice.Call(t.Context(), guard, func(ctx context.Context) (int, error) {
					_, limited := ctx.Deadline()
					assert.False(t, limited, name)
					time.Sleep(took)
					return 0, fail
				})
				return err
			}
			require.NoError(t, ask(50*ms, nil))
			require.Equal(t, timeoutError, ask(100*ms, timeoutError))
			require.Equal(t, timeoutError, ask(20*ms, timeoutError))
			require.Equal(t, errRefused, ask(0, errRefused))
			assert.Panics(t, func() {
				_, _ = sluice.Call(t.Context(), guard, func(context.Context) (int, error) { panic("down") })
			})
			require.NoError(t, guard.Do(t.Context(), func(context.Context) error { return nil }))
			got, n := to.Snapshot().Totals, int64(1)
			if name == "in a chain" {
				n = 2 // there are two meters in it
			}
			assert.Equal(t, before.Finished+2*n, got.Finished, name)
			assert.Equal(t, before.TimedOut+n, got.TimedOut, name)
			assert.Equal(t, before.CutShort+n, got.CutShort, name)
			assert.Equal(t, before.Failed+2*n, got.Failed, name)
		}
	})
}

// It refuses what Begin refuses.
func TestMeter_TooLittleTimeLeft(t *testing.T) {
	to := settled(t)
	ctx := &caller{Context: t.Context(), deadline: at(0) + 1}
	_, err := to.Meter().Admit(ctx, at(0))
	require.NoError(t, err, "one goes all the same")
	_, err = to.Meter().Admit(ctx, at(0))
	require.ErrorIs(t, err, ErrDeadlineTooShort)
}
