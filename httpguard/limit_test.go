package httpguard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// dripping answers with one byte after each wait.
func dripping(waits ...time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, wait := range waits {
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
				return
			}
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func TestTotalTimeout_BoundsHeadersAndBody(t *testing.T) {
	const limit = 10 * time.Second
	for name, c := range map[string]struct {
		waits []time.Duration
		began bool // RoundTrip returned a response
		body  string
		ended time.Duration // 0: in time
	}{
		"in time":       {[]time.Duration{time.Second, 3 * time.Second, 5 * time.Second}, true, "xxx", 0},
		"at headers":    {[]time.Duration{time.Minute}, false, "", limit},
		"in the body":   {[]time.Duration{time.Second, 8 * time.Second, time.Minute}, true, "xx", limit},
		"drip for drip": {[]time.Duration{time.Second, time.Second, time.Second, time.Second, time.Second, time.Second, time.Second, time.Second, time.Second, 2 * time.Second}, true, "xxxxxxxxx", limit},
	} {
		t.Run(name, func(t *testing.T) {
			overBothInABubble(t, dripping(c.waits...), func(t *testing.T, base *http.Transport) {
				b := neverTrips(t)
				tr := newTransport(t, base, WithTotalTimeout(limit), WithAttemptTimeout(limit), WithBreaker(b))
				start := time.Now()
				resp, err := tr.RoundTrip(get(t.Context()))
				if !c.began {
					assert.Nil(t, resp)
					require.ErrorIs(t, err, sluice.ErrTimeout)
					assert.Equal(t, c.ended, time.Since(start))
					assert.EqualValues(t, 1, b.Snapshot().Totals.Failure)
					return
				}
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				assert.Equal(t, c.body, string(body))
				if c.ended == 0 {
					require.NoError(t, err)
					require.NoError(t, resp.Body.Close())
					return
				}
				assert.EqualError(t, err, "httpguard: the call was not over within 10s")
				require.ErrorIs(t, err, sluice.ErrTimeout)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, c.ended, time.Since(start))
				assert.EqualValues(t, 1, tr.Snapshot().BodyErrors)
				assert.EqualValues(t, 1, b.Snapshot().Totals.Success, "of headers that were in time")
				require.NoError(t, resp.Body.Close())
			})
		})
	}
}

// Whoever is further in can see how much time there is, and why it ended. The caller's
// own deadline stays the caller's.
func TestTotalTimeout_IsADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent context.Context
		tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			sent = req.Context()
			return hanging(req)
		}), WithTotalTimeout(time.Minute))
		_, err := tr.RoundTrip(get(t.Context()))
		require.EqualError(t, err, "httpguard: the call was not over within 1m0s")
		deadline, ok := sent.Deadline()
		assert.True(t, ok)
		assert.Equal(t, time.Now(), deadline)
		assert.Same(t, tr.limits.total, context.Cause(sent))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = tr.RoundTrip(get(ctx))
		assert.Equal(t, context.DeadlineExceeded, err, "the base's own")
		require.NotErrorIs(t, err, sluice.ErrTimeout)

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = tr.RoundTrip(get(ctx))
		assert.Equal(t, context.Canceled, err)
	})
}

// A fallback stands outside the limit: it is asked when that is over.
func TestTotalTimeout_LeavesTheFallbackItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, baseFunc(hanging), WithTotalTimeout(time.Second), WithFallback(func(req *http.Request, cause error) (*http.Response, error) {
			assert.NoError(t, req.Context().Err())
			require.ErrorIs(t, cause, sluice.ErrTimeout)
			time.Sleep(time.Minute)
			return Respond(req, 200, nil, []byte("stale")), nil
		}, OnTimeout))
		resp, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, "stale", readAll(t, resp))
		assert.EqualValues(t, 1, tr.Snapshot().Fallbacks[OnTimeout-1].Served)
	})
}

// A caller that leaves a moment before the limit is one that left, and one that leaves
// after it does not excuse the upstream.
func TestLimits_WhoEndedTheCallDecides(t *testing.T) {
	for name, opt := range map[string]Option{"attempt": WithAttemptTimeout(time.Second), "total": WithTotalTimeout(time.Second)} {
		for _, c := range []struct {
			leaves  time.Duration
			ignored int64
		}{{time.Second - 1, 1}, {time.Second + 1, 0}} {
			synctest.Test(t, func(t *testing.T) {
				b := neverTrips(t)
				slow := baseFunc(func(req *http.Request) (*http.Response, error) {
					_, err := hanging(req)
					time.Sleep(time.Second) // to notice it
					return nil, err
				})
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(c.leaves, cancel)
				_, err := newTransport(t, slow, WithBreaker(b), opt).RoundTrip(get(ctx))
				assert.Equal(t, c.ignored == 0, errors.Is(err, sluice.ErrTimeout), name)
				assert.Equal(t, c.ignored, b.Snapshot().Totals.Ignored, name)
				assert.Equal(t, 1-c.ignored, b.Snapshot().Totals.Failure, name)
			})
		}
	}
}

// Nested Transports have limits of the same kind, and must not take the other's for
// their own: the inner one's breaker sees a failure by whoever's limit, and each error
// tells whose it was.
func TestLimits_OfAnOuterTransportAreNotTakenForOwn(t *testing.T) {
	for _, c := range []struct {
		outer, inner time.Duration
		want         string
	}{
		{time.Second, time.Minute, "httpguard: the call was not over within 1s"},
		{time.Minute, time.Second, "httpguard: the call was not over within 1s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := neverTrips(t), neverTrips(t)
			inner := newTransport(t, baseFunc(hanging), WithBreaker(ours), WithTotalTimeout(c.inner))
			outer := newTransport(t, inner, WithBreaker(theirs), WithTotalTimeout(c.outer))
			_, err := outer.RoundTrip(get(t.Context()))
			assert.EqualError(t, err, c.want)
			assert.EqualValues(t, 1, ours.Snapshot().Totals.Failure)
			assert.EqualValues(t, 1, theirs.Snapshot().Totals.Failure)
		})
	}
}

func TestBodyIdleTimeout_BoundsEachRead(t *testing.T) {
	const limit = 10 * time.Second
	for name, c := range map[string]struct {
		waits []time.Duration
		body  string
		stuck bool
	}{
		"keeps coming":         {[]time.Duration{0, limit - 1, limit - 1, limit - 1, limit - 1}, "xxxxx", false},
		"stands still":         {[]time.Duration{0, limit - 1, time.Hour}, "xx", true},
		"headers may be late":  {[]time.Duration{time.Hour, time.Second}, "xx", false},
		"nothing but the head": {[]time.Duration{}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			overBothInABubble(t, dripping(c.waits...), func(t *testing.T, base *http.Transport) {
				tr := newTransport(t, base, WithBodyIdleTimeout(limit))
				resp, err := tr.RoundTrip(get(t.Context()))
				require.NoError(t, err)
				begun := time.Now()
				body, err := io.ReadAll(resp.Body)
				assert.Equal(t, c.body, string(body))
				if !c.stuck {
					require.NoError(t, err)
					return
				}
				assert.EqualError(t, err, "httpguard: no more of the response body within 10s")
				require.ErrorIs(t, err, sluice.ErrTimeout)
				assert.Equal(t, limit-1+limit, time.Since(begun))
				assert.EqualValues(t, 1, tr.Snapshot().BodyErrors)
				require.NoError(t, resp.Body.Close())
			})
		})
	}
}

// The time that the reader takes for itself is not the upstream's.
func TestBodyIdleTimeout_ReaderMayTakeItsTime(t *testing.T) {
	overBothInABubble(t, dripping(0, 0, 0), func(t *testing.T, base *http.Transport) {
		resp, err := newTransport(t, base, WithBodyIdleTimeout(time.Second)).RoundTrip(get(t.Context()))
		require.NoError(t, err)
		one := make([]byte, 1)
		for range 3 {
			time.Sleep(time.Hour)
			_, err := io.ReadFull(resp.Body, one)
			require.NoError(t, err)
		}
		time.Sleep(time.Hour)
		_, err = resp.Body.Read(one)
		assert.Equal(t, io.EOF, err)
	})
}

// http.Client.Timeout costs a goroutine for each call around a RoundTripper that it
// does not know; the total timeout costs none.
func TestC14_TotalTimeoutCostsNoGoroutine(t *testing.T) {
	const calls = 50
	extra := func(client *http.Client) (goroutines int) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			for range calls {
				go func() { _, _ = client.Do(get(ctx)) }()
			}
			synctest.Wait()
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			goroutines = bytes.Count(stacks, []byte("created by net/http.setRequestCancel"))
			cancel()
			synctest.Wait()
		})
		return goroutines
	}
	assert.Zero(t, extra(&http.Client{Transport: newTransport(t, baseFunc(hanging), WithTotalTimeout(time.Minute), WithAttemptTimeout(time.Minute))}))
	assert.Equal(t, calls, extra(&http.Client{Transport: newTransport(t, baseFunc(hanging)), Timeout: time.Minute}), "or the comment on WithTotalTimeout is out of date")
}

// A limit leaves a switched connection alone: it is the caller's own.
func TestLimits_LeaveSwitchedProtocolsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := &pipeBody{Reader: strings.NewReader("in")}
		base := baseFunc(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 101, Body: pipe}, nil
		})
		b := newBreaker(t)
		tr := newTransport(t, base, WithBreaker(b), WithTotalTimeout(time.Second), WithBodyIdleTimeout(time.Second), WithAttemptTimeout(time.Second), WithFinishAt(Body))
		resp, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		assert.EqualValues(t, 1, b.Snapshot().Totals.Success, "finished at the headers")
		time.Sleep(time.Hour)
		_, err = resp.Body.(io.Writer).Write([]byte("out"))
		require.NoError(t, err)
		in, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, "in", string(in))
		require.NoError(t, resp.Body.Close())
		assert.Zero(t, tr.Snapshot().BodyErrors)
	})
}

// The end of every body lets go of what the limits hold: nothing is left behind in the
// caller's context, whichever limits there are.
func TestLimits_EndWithTheBody(t *testing.T) {
	for name, opts := range map[string][]Option{
		"attempt": {WithAttemptTimeout(time.Hour)},
		"total":   {WithTotalTimeout(time.Hour)},
		"idle":    {WithBodyIdleTimeout(time.Hour)},
		"all":     {WithAttemptTimeout(time.Hour), WithTotalTimeout(time.Hour), WithBodyIdleTimeout(time.Hour)},
	} {
		for how, end := range map[string]func(io.ReadCloser){
			"read":  func(body io.ReadCloser) { _, _ = io.Copy(io.Discard, body) },
			"close": func(body io.ReadCloser) { _ = body.Close() },
		} {
			synctest.Test(t, func(t *testing.T) {
				var sent context.Context
				tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
					sent = req.Context()
					return response(req, 200, "body"), nil
				}), opts...)
				start := time.Now()
				resp, err := tr.RoundTrip(get(t.Context()))
				require.NoError(t, err)
				require.NoError(t, sent.Err(), name)
				end(resp.Body)
				assert.ErrorIs(t, sent.Err(), context.Canceled, name+" "+how)
				assert.Equal(t, start, time.Now())
				assert.Zero(t, tr.Snapshot().BodyErrors)
			})
		}
	}
}

// countingContext knows how many contexts below it are still to be told of its end.
type countingContext struct {
	context.Context
	below int
}

func (c *countingContext) Done() <-chan struct{} { return make(chan struct{}) }

func (c *countingContext) AfterFunc(func()) func() bool {
	c.below++
	return func() bool { c.below--; return true }
}

// A context that is not let go stays in the caller's for as long as that one lives,
// which for a worker is for ever.
func TestLimits_LeaveNothingInTheCallersContext(t *testing.T) {
	for name, opts := range map[string][]Option{
		"attempt": {WithAttemptTimeout(time.Hour)},
		"total":   {WithTotalTimeout(time.Hour)},
		"idle":    {WithBodyIdleTimeout(time.Hour)},
		"two":     {WithAttemptTimeout(time.Hour), WithTotalTimeout(time.Hour)},
		"all":     {WithAttemptTimeout(time.Hour), WithTotalTimeout(time.Hour), WithBodyIdleTimeout(time.Hour)},
	} {
		for _, base := range []baseFunc{answering(200, "body"), answering(204, ""), failing(io.EOF), breaking(io.ErrUnexpectedEOF)} {
			ctx := &countingContext{Context: context.Background()}
			held := false
			resp, err := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
				held = ctx.below > 0
				return base(req)
			}), opts...).RoundTrip(get(ctx))
			assert.True(t, held, name)
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
			}
			assert.Zero(t, ctx.below, name)
		}
	}
}

// A refusal comes before any limit begins.
func TestLimits_NoneIsSpentOnARefusal(t *testing.T) {
	tr := newTransport(t, failing(io.EOF), WithBreaker(openBreaker(t, time.Hour)),
		WithAttemptTimeout(time.Second), WithTotalTimeout(time.Second), WithBodyIdleTimeout(time.Second), WithFinishAt(Body))
	req := get(t.Context())
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := tr.RoundTrip(req); !errors.Is(err, breaker.ErrOpen) {
			t.Error(err)
		}
	}))
}

// A body of net/http that hangs is cut off, too.
func TestBodyIdleTimeout_CutsOffBodiesOfNetHTTP(t *testing.T) {
	overBothInABubble(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, func(t *testing.T, base *http.Transport) {
		for _, opt := range []Option{WithBodyIdleTimeout(time.Second), WithTotalTimeout(time.Second)} {
			b := neverTrips(t)
			client := &http.Client{Transport: newTransport(t, base, opt, WithBreaker(b), WithFinishAt(Body))}
			start := time.Now()
			resp, err := client.Get("http://upstream.test/")
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.ErrorIs(t, err, sluice.ErrTimeout)
			assert.Equal(t, time.Second, time.Since(start))
			assert.Equal(t, "begun", string(body))
			require.NoError(t, resp.Body.Close())
			assert.EqualValues(t, 1, b.Snapshot().Totals.Failure)
		}
	})
}
