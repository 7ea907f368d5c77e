package httpguard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// sending is a request whose body comes in pieces, each after a pause; it never ends if
// the last pause is negative.
func sending(ctx context.Context, pauses ...time.Duration) *http.Request {
	r, w := io.Pipe()
	req := get(ctx)
	req.Method, req.Body, req.ContentLength = http.MethodPost, r, -1
	go func() {
		for _, pause := range pauses {
			if pause < 0 {
				return
			}
			time.Sleep(pause)
			_, _ = w.Write([]byte("piece"))
		}
		_ = w.Close()
	}()
	return req
}

// Who uploads slowly, or stands still on purpose, holds a call for as long as he likes.
// That says nothing of the upstream, which waits for him too: twenty such clients of a
// gateway would open its breaker for everybody.
func TestUpload_SlowClientsOpenNothing(t *testing.T) {
	const slow, limit = 100 * time.Millisecond, time.Second
	overBothInABubble(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/deaf" { // takes nothing
			time.Sleep(2 * limit)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/slow":
			time.Sleep(2 * slow)
		case "/hung":
			<-r.Context().Done()
		}
	}, func(t *testing.T, base *http.Transport) {
		for _, c := range []struct {
			path    string
			pauses  []time.Duration
			opts    []Option
			limited bool // the call ends with a time limit
			want    outcomes
			slow    int64
		}{
			{path: "/", pauses: []time.Duration{10 * time.Second, 10 * time.Second}, want: outcomes{success: 1}},
			{path: "/", pauses: []time.Duration{10 * time.Second}, opts: []Option{WithFinishAt(Body)}, want: outcomes{success: 1}},
			{path: "/slow", pauses: []time.Duration{10 * time.Second}, want: outcomes{success: 1}, slow: 1},
			{path: "/", pauses: []time.Duration{3 * time.Second}, opts: []Option{WithAttemptTimeout(limit)}, limited: true, want: outcomes{ignored: 1}},
			{path: "/", pauses: []time.Duration{0, 3 * time.Second}, opts: []Option{WithTotalTimeout(limit)}, limited: true, want: outcomes{ignored: 1}},
			{path: "/hung", pauses: []time.Duration{limit / 2}, opts: []Option{WithAttemptTimeout(limit)}, limited: true, want: outcomes{failure: 1}, slow: 1},
			{path: "/hung", pauses: []time.Duration{0}, opts: []Option{WithTotalTimeout(limit)}, limited: true, want: outcomes{failure: 1}, slow: 1},
		} {
			b := newBreaker(t, breaker.WithSlowCallRatio(slow, 1), breaker.WithErrorCount(1000))
			tr := newTransport(t, base, append(c.opts, WithBreaker(b))...)
			req := sending(t.Context(), c.pauses...)
			req.URL.Path = c.path
			resp, err := tr.RoundTrip(req)
			if c.limited {
				require.ErrorIs(t, err, sluice.ErrTimeout, c.path)
				var timeout interface{ Timeout() bool }
				require.ErrorAs(t, err, &timeout)
				assert.True(t, timeout.Timeout())
			} else {
				require.NoError(t, err, c.path)
				readAll(t, resp)
			}
			assert.Equal(t, c.want, outcomesOf(b), "%+v", c)
			assert.Equal(t, c.slow, b.Snapshot().Totals.Slow, "%+v", c)
			wider := sluice.Failure
			if c.want.ignored > 0 {
				wider = sluice.Ignored
			}
			if c.limited {
				assert.Equal(t, wider, sluice.Classify(t.Context(), err), "a guard further out hears it too: %+v", c)
			}
		}

		b := newBreaker(t, breaker.WithSlowCallRatio(slow, 1), breaker.WithErrorCount(1000))
		req, body := post(t.Context(), "")
		body.Reader, req.ContentLength, req.URL.Path = endless{}, -1, "/deaf"
		_, err := newTransport(t, base, WithBreaker(b), WithAttemptTimeout(limit)).RoundTrip(req)
		require.ErrorIs(t, err, sluice.ErrTimeout)
		assert.Equal(t, outcomes{failure: 1}, outcomesOf(b), "an upstream that takes nothing is to blame")
		time.Sleep(2 * limit) // until its handler has ended
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// Who has waited for his own upload and leaves is no evidence of a slow upstream.
func TestUpload_SlowClientsThatLeaveAreNotSlowCalls(t *testing.T) {
	overBothInABubble(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}, func(t *testing.T, base *http.Transport) {
		for last, slow := range map[time.Duration]int64{
			time.Minute: 0,
			0:           1, // this one has waited for the upstream
		} {
			b := newBreaker(t, breaker.WithSlowCallRatio(100*time.Millisecond, 1))
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, leave)
			req := sending(ctx, 0, last)
			_, err := newTransport(t, base, WithBreaker(b)).RoundTrip(req)
			require.ErrorIs(t, err, context.Canceled)
			assert.Equal(t, outcomes{ignored: 1}, outcomesOf(b))
			assert.Equal(t, slow, b.Snapshot().Totals.Slow)
			time.Sleep(time.Minute) // until the one who sends has ended
		}
	})
}

// A probe that is somebody's slow upload must not fail for that.
func TestUpload_SlowProbeCloses(t *testing.T) {
	overBothInABubble(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, func(t *testing.T, base *http.Transport) {
		b := openBreaker(t, time.Second, breaker.WithSlowCallRatio(100*time.Millisecond, 1))
		time.Sleep(time.Second)
		resp, err := newTransport(t, base, WithBreaker(b)).RoundTrip(sending(t.Context(), 3*time.Second))
		require.NoError(t, err)
		readAll(t, resp)
		assert.Equal(t, breaker.Closed, b.State())
	})
}

// A probe whose own body does not come would keep everybody else out until its lease is
// over, and then count as bad: a client that stands still could keep a breaker open.
func TestUpload_StalledProbeGivesItsPlaceBack(t *testing.T) {
	overBothInABubble(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, func(t *testing.T, base *http.Transport) {
		for _, limit := range []Option{WithAttemptTimeout(time.Second), WithTotalTimeout(time.Second), WithFinishAt(Body)} {
			b := openBreaker(t, time.Second)
			tr := newTransport(t, base, WithBreaker(b), limit)
			time.Sleep(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			ended := make(chan error)
			go func() {
				_, err := tr.RoundTrip(sending(ctx, 5*time.Second))
				ended <- err
			}()
			synctest.Wait()
			assert.EqualValues(t, 1, b.Snapshot().Probe.Issued)
			_, err := tr.RoundTrip(get(t.Context()))
			require.ErrorIs(t, err, breaker.ErrOpen)
			time.Sleep(2*time.Second + time.Millisecond)
			resp, err := tr.RoundTrip(get(t.Context()))
			require.NoError(t, err)
			readAll(t, resp)
			assert.Equal(t, breaker.Closed, b.State())
			require.ErrorIs(t, <-ended, context.DeadlineExceeded)
			assert.Equal(t, outcomes{success: 1, ignored: 1}, outcomesOf(b))
			assert.Zero(t, b.Snapshot().Totals.Stale)
			cancel()
			time.Sleep(5 * time.Second) // until the one who sends has ended
		}
	})
}

// What is wrong with a request that could never be sent is its caller's doing, also
// where its body is in memory.
func TestC15_BodiesThatDoNotKeepTheirPromise(t *testing.T) {
	overBothInABubble(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, func(t *testing.T, base *http.Transport) {
		broken := errors.New("disk broke")
		for name, change := range map[string]func(*http.Request){
			"longer": func(r *http.Request) { r.ContentLength = 2 },
			"none": func(r *http.Request) {
				r.ContentLength, r.Body, r.GetBody = 2, nil, nil
			},
			"fails":   func(r *http.Request) { r.Body, r.GetBody = io.NopCloser(errReader{broken}), nil },
			"shorter": func(r *http.Request) { r.ContentLength = 10 },
		} {
			for tries := 0; ; tries++ {
				b := newBreaker(t)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://upstream.test/", bytes.NewReader([]byte("12345")))
				require.NoError(t, err)
				change(req)
				resp, err := newTransport(t, base, WithBreaker(b)).RoundTrip(req)
				if err == nil { // HTTP/2 sends some all the same
					readAll(t, resp)
					assert.Equal(t, outcomes{success: 1}, outcomesOf(b), name)
					break
				}
				// In net/http the reason races with the end of the connection that it is for.
				if req.GetBody != nil && outcomesOf(b).ignored == 0 && tries < 100 {
					continue
				}
				assert.Equal(t, outcomes{ignored: 1}, outcomesOf(b), "%s: %v", name, err)
				assert.Equal(t, sluice.Ignored, sluice.Classify(t.Context(), err), name)
				break
			}
		}
	})
}
