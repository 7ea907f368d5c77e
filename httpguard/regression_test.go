package httpguard

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// http.Client gives its Timeout to a RoundTripper it does not know as a deadline and
// as a Cancel channel, both at the same moment. It is a call that took too long.
func TestC14_ClientTimeoutIsAFailure(t *testing.T) {
	overBoth(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		func(t *testing.T, srv *httptest.Server, base *http.Transport) {
			for _, opts := range [][]Option{nil, {WithAttemptTimeout(time.Minute)}} {
				b := neverTrips(t)
				client := &http.Client{Transport: newTransport(t, base, append(opts, WithBreaker(b))...), Timeout: 20 * time.Millisecond}
				for range 10 {
					_, err := client.Get(srv.URL)
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
				assert.EqualValues(t, 10, b.Snapshot().Totals.Failure)
			}
		})
}

// gobreaker knew success and failure only, so clients that left opened breakers:
// https://github.com/sony/gobreaker/issues/105, and proxies answered and counted them
// as 500: https://github.com/traefik/traefik/issues/13879
func TestC15_ClientsThatLeaveOpenNothing(t *testing.T) {
	const cancels = 1000
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t)
		tr := newTransport(t, baseFunc(hanging), WithBreaker(b), WithAttemptTimeout(time.Minute))
		for range cancels {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				time.Sleep(time.Millisecond)
				cancel()
			}()
			_, err := tr.RoundTrip(get(ctx))
			require.ErrorIs(t, err, context.Canceled)
		}
		assert.Equal(t, breaker.Closed, b.State())
		assert.EqualValues(t, cancels, b.Snapshot().Totals.Ignored)
		assert.Zero(t, b.Snapshot().Window.Total)
	})
	arrived := make(chan struct{})
	overBoth(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		b := newBreaker(t)
		tr := newTransport(t, base, WithBreaker(b))
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-arrived
				cancel()
			}()
			_, err := tr.RoundTrip(getFrom(t, ctx, srv.URL))
			require.ErrorIs(t, err, context.Canceled)
		}
		assert.Equal(t, breaker.Closed, b.State())
		assert.EqualValues(t, 50, b.Snapshot().Totals.Ignored)
	})
}

// Clients that break off their uploads could open the breaker of a healthy upstream,
// and shut out everybody else, on purpose even: the context of a server's request is
// not cancelled while its body is being read.
func TestC15_BrokenUploadsThroughAProxyOpenNothing(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	ended := make(chan error, 1)
	b := newBreaker(t)
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: newTransport(t, nil, WithBreaker(b)),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			ended <- err
		},
	}
	overBoth(t, proxy.ServeHTTP, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		for range 30 {
			body, client := io.Pipe()
			req, err := http.NewRequest(http.MethodPost, srv.URL, body)
			require.NoError(t, err)
			req.ContentLength = 1 << 20
			go func() {
				_, _ = client.Write(make([]byte, 1000))
				_ = client.CloseWithError(errors.New("the user closed the tab"))
			}()
			_, err = base.RoundTrip(req)
			require.Error(t, err)
			require.Error(t, <-ended)
		}
		assert.Equal(t, breaker.Closed, b.State())
		assert.Zero(t, b.Snapshot().Totals.Failure)
	})
}

// A breaker that never hears of statuses never opens:
// https://github.com/sony/gobreaker/pull/121
func TestC16_FailingStatusesOpenAndNotFoundsDoNot(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/500" {
			w.WriteHeader(500)
			return
		}
		w.WriteHeader(404)
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		b := newBreaker(t)
		client := &http.Client{Transport: newTransport(t, base, WithBreaker(b))}
		for range 100 {
			resp, err := client.Get(srv.URL + "/404")
			require.NoError(t, err)
			readAll(t, resp)
		}
		require.Equal(t, breaker.Closed, b.State())

		b.Reset()
		for range 20 {
			resp, err := client.Get(srv.URL + "/500")
			require.NoError(t, err)
			assert.Equal(t, 500, resp.StatusCode)
			readAll(t, resp)
		}
		_, err := client.Get(srv.URL + "/500")
		require.ErrorIs(t, err, breaker.ErrOpen)
	})
}

// A probe whose caller leaves proves nothing: the next call gets its place. With only
// success and failure the breaker would open again, or wait for ever.
func TestC15_CancelledProbeGivesItsPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes, others int
		hang := true
		b := openBreaker(t, time.Second)
		tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			if sluice.IsProbe(req.Context()) {
				probes++
			} else {
				others++
			}
			if hang {
				return hanging(req)
			}
			return answering(200, "")(req)
		}), WithBreaker(b))
		time.Sleep(time.Second)

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := tr.RoundTrip(get(ctx))
			ended <- err
		}()
		synctest.Wait()
		_, err := tr.RoundTrip(get(t.Context()))
		require.ErrorIs(t, err, breaker.ErrOpen, "there is one place, and it is taken")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)

		hang = false
		req := get(t.Context())
		_, err = tr.RoundTrip(req)
		require.NoError(t, err, "it is free again")
		assert.Equal(t, breaker.Closed, b.State())
		assert.False(t, sluice.IsProbe(req.Context()), "the caller's own request is left alone")
		_, err = tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, 2, probes)
		assert.Equal(t, 1, others)
	})
}

// The upstream answered, and wants less: that neither closes nor opens, and it is not
// asked again before the time it named.
func TestC17_ThrottledProbeWaitsForTheRetryAfter(t *testing.T) {
	for name, header := range map[string]func() string{
		"seconds": func() string { return "7" },
		"date":    func() string { return time.Now().Add(7 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				status := 429
				b := openBreaker(t, time.Second)
				tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
					resp := response(req, status, "")
					resp.Header.Set("Retry-After", header())
					return resp, nil
				}), WithBreaker(b))
				time.Sleep(time.Second)
				resp, err := tr.RoundTrip(get(t.Context()))
				require.NoError(t, err)
				assert.Equal(t, 429, resp.StatusCode, "the caller gets it as it is")
				assert.Equal(t, breaker.HalfOpen, b.State())

				time.Sleep(7*time.Second - 1)
				_, err = tr.RoundTrip(get(t.Context()))
				require.ErrorIs(t, err, breaker.ErrOpen)
				time.Sleep(time.Nanosecond)
				status = 200
				_, err = tr.RoundTrip(get(t.Context()))
				require.NoError(t, err)
				assert.Equal(t, breaker.Closed, b.State())
			})
		})
	}
}
