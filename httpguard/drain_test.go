package httpguard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// After Begin nobody new comes in, those inside are brought to their end, and the load
// balancer is told to go elsewhere.
func TestS19_Drain(t *testing.T) {
	arrived, hold := make(chan struct{}), make(chan struct{})
	var drain *Drain
	var h http.Handler
	handler := func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }
	overBoth(t, handler, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		drain = new(Drain)
		h = newGate(t, WithDrain(drain), WithExempt("/readyz")).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/slow":
				arrived <- struct{}{}
				<-hold
			case drain.Begun():
				w.WriteHeader(500)
			}
		}))
		status := func(path string) (code int, closes, reused bool) {
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
			resp, err := base.RoundTrip(getFrom(t, ctx, srv.URL+path))
			require.NoError(t, err)
			readAll(t, resp)
			return resp.StatusCode, resp.Close, reused
		}
		code, _, _ := status("/")
		require.Equal(t, 200, code)

		var wg sync.WaitGroup
		wg.Go(func() {
			code, _, _ := status("/slow")
			assert.Equal(t, 200, code, "who is inside is served")
		})
		<-arrived
		assert.Equal(t, 1, drain.InFlight())
		drain.Begin()
		require.ErrorIs(t, drain.Wait(gone(t)), context.Canceled)
		require.ErrorContains(t, drain.Wait(gone(t)), "1 requests in flight")

		code, closes, _ := status("/")
		assert.Equal(t, 503, code)
		assert.Equal(t, !srv.EnableHTTP2, closes)
		assert.Eventually(t, func() bool { // HTTP/2 says it in a frame of its own
			_, _, reused := status("/")
			return !reused
		}, time.Minute, time.Millisecond, "the next request opens another connection")
		code, _, _ = status("/readyz")
		assert.Equal(t, 500, code, "the readiness check passes, and says no")

		hold <- struct{}{}
		require.NoError(t, drain.Wait(t.Context()))
		wg.Wait()
		require.NoError(t, drain.Wait(gone(t)), "it is over, whatever the ctx")
		assert.Zero(t, drain.InFlight())
	})
}

func TestDrain_Steps(t *testing.T) {
	var d Drain
	assert.False(t, d.Begun())
	require.True(t, d.enter())
	require.True(t, d.enter())
	d.leave()
	d.Begin()
	d.Begin()
	assert.True(t, d.Begun())
	require.False(t, d.enter())
	assert.Equal(t, 1, d.InFlight())
	require.Error(t, d.Wait(gone(t)))
	d.leave()
	require.NoError(t, d.Wait(t.Context()))
	require.False(t, d.enter(), "it stays closed")

	var idle Drain
	require.ErrorIs(t, idle.Wait(gone(t)), context.Canceled, "not begun")
	idle.Begin()
	require.NoError(t, idle.Wait(t.Context()))
}

// Whoever waits before Begin waits for it.
func TestDrain_WaitsForBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Drain
		time.AfterFunc(time.Hour, d.Begin)
		start := time.Now()
		require.NoError(t, d.Wait(t.Context()))
		assert.Equal(t, time.Hour, time.Since(start))
	})
}

// No request slips in after the end, and the end comes exactly once (a second one would
// panic), whoever is last.
func TestDrain_EndsOnceUnderConcurrency(t *testing.T) {
	for range 200 {
		var d Drain
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for d.enter() {
					assert.Positive(t, d.InFlight())
					d.leave()
				}
			})
		}
		wg.Go(d.Begin)
		assert.NoError(t, d.Wait(t.Context()))
		assert.Zero(t, d.InFlight())
		wg.Wait()
		assert.EqualValues(t, 1, d.state.Load())
	}
}

func TestServerRefusals_AreRejections(t *testing.T) {
	g := newGate(t, WithName("front"), WithMaxInFlight(7), WithDrain(new(Drain)), WithDeadline(time.Second))
	for _, c := range []struct {
		err, is              error
		text, policy, reason string
	}{
		{g.full, ErrFull, `httpguard "front": 7 requests in flight`, "in_flight", "full"},
		{g.draining, ErrDraining, `httpguard "front": draining`, "drain", "draining"},
	} {
		require.ErrorIs(t, c.err, c.is)
		require.ErrorIs(t, c.err, sluice.ErrRejected)
		var r sluice.Rejection
		require.ErrorAs(t, c.err, &r)
		assert.Equal(t, c.text, c.err.Error())
		assert.Equal(t, "front", r.Resource())
		assert.Equal(t, c.policy, r.Policy())
		assert.Equal(t, c.reason, r.Reason())
		assert.GreaterOrEqual(t, r.RetryAfter(), time.Second)
	}
	require.ErrorIs(t, g.late, sluice.ErrTimeout)
	require.NotErrorIs(t, g.late, sluice.ErrRejected)
	assert.EqualError(t, g.late, `httpguard "front": no answer within 1s`)
}
