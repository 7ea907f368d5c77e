package httpguard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/adaptive"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/metrics"
)

// A megabyte that comes in pieces was cut off, because the context of a timeout of ten
// minutes was cancelled when RoundTrip returned.
// https://github.com/failsafe-go/failsafe-go/issues/123
func TestFailsafeGo123_ContextOutlivesRoundTrip(t *testing.T) {
	overBothInABubble(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 16 {
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<16))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Second)
		}
	}, func(t *testing.T, base *http.Transport) {
		for name, opt := range map[string]Option{
			"attempt": WithAttemptTimeout(10 * time.Minute), "total": WithTotalTimeout(10 * time.Minute), "idle": WithBodyIdleTimeout(10 * time.Minute),
		} {
			resp, err := newTransport(t, base, opt).RoundTrip(get(t.Context()))
			require.NoError(t, err)
			assert.Len(t, readAll(t, resp), 1<<20, name)
		}
	})
}

// One timer for headers and body cut off streams that were well: events that come for as
// long as somebody listens. A time limit for the headers, here one of the upstream's own
// that follows how long they take, leaves the body alone; one for a body that stands
// still sees that this one does not.
// https://github.com/privacybydesign/irmago/issues/606
// https://github.com/fauna/fauna-go/pull/138
func TestIrmago606_TimeLimitsLeaveStreamsAlone(t *testing.T) {
	overBothInABubble(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 30 {
			_, _ = io.WriteString(w, "data: tick\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Second)
		}
	}, func(t *testing.T, base *http.Transport) {
		limit := sluice.Must(adaptive.NewTimeout("events", time.Second, time.Second))
		transport := newTransport(t, base, WithAttemptTimeout(limit.Value()), WithBodyIdleTimeout(2*time.Second))
		began := time.Now()
		resp, err := transport.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, 30, strings.Count(string(readAll(t, resp)), "tick"))
		assert.GreaterOrEqual(t, time.Since(began), 30*time.Second)
	})
}

// Responses that a layer puts aside hold their connection unless they are drained and
// closed; with one connection a host the next call never gets it.
// https://github.com/gojek/heimdall/issues/45
// https://github.com/openshift-online/ocm-sdk-go/pull/804
func TestHeimdall45_AbandonedResponsesFreeTheirConnection(t *testing.T) {
	calls := 0
	overBoth(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls%3 != 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 10<<10))
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		calls = 0
		base.MaxConnsPerHost = 1
		tr := newTransport(t, base, append(everything(neverTrips(t)), WithFallback(func(req *http.Request, _ error) (*http.Response, error) {
			return Respond(req, http.StatusOK, nil, []byte("stale")), nil
		}, OnFailure))...)
		for i := range 9 {
			resp, err := tr.RoundTrip(getFrom(t, t.Context(), srv.URL))
			require.NoError(t, err)
			assert.Equal(t, i%3 != 2, readAll(t, resp) == "stale")
		}
	})
}

// A body that cannot be written to any more made every upgrade through a proxy a 502.
// https://github.com/open-telemetry/opentelemetry-go-contrib/issues/1329
func TestOtelContrib1329_UpgradesAreWritable(t *testing.T) {
	TestC10_SwitchedProtocolsStayWritable(t)
}

// Clients that leave were answered 500, counted as failures, or tried again. They leave
// before the call, before the headers, in the body and in their own upload.
// https://github.com/traefik/traefik/issues/13879
// https://github.com/traefik/traefik/issues/2932
// https://github.com/golang/go/issues/20071
// https://github.com/vulcand/oxy/issues/112
func TestTraefik13879_ClientsThatLeaveAreIgnored(t *testing.T) {
	arrived := make(chan struct{})
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "begun")
			_ = http.NewResponseController(w).Flush()
		}
		arrived <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		for name, leave := range map[string]func(tr *Transport, ctx context.Context, cancel func()) error{
			"before the call": func(tr *Transport, ctx context.Context, cancel func()) error {
				cancel()
				_, err := tr.RoundTrip(getFrom(t, ctx, srv.URL))
				return err
			},
			"before the headers": func(tr *Transport, ctx context.Context, cancel func()) error {
				go func() { <-arrived; cancel() }()
				_, err := tr.RoundTrip(getFrom(t, ctx, srv.URL))
				return err
			},
			"in the body": func(tr *Transport, ctx context.Context, cancel func()) error {
				go func() { <-arrived; cancel() }()
				resp, err := tr.RoundTrip(getFrom(t, ctx, srv.URL+"/body"))
				if err != nil { // it may be faster than the headers
					return err
				}
				_, err = io.ReadAll(resp.Body)
				return errors.Join(err, resp.Body.Close())
			},
			"in the upload": func(tr *Transport, ctx context.Context, cancel func()) error {
				body, client := io.Pipe()
				go func() {
					<-arrived
					cancel()
					_ = client.CloseWithError(errors.New("the user closed the tab")) // net/http waits for a Read under way
				}()
				go func() { _, _ = client.Write(make([]byte, 100_000)) }() // more than a buffer holds
				req := getFrom(t, ctx, srv.URL)
				req.Method, req.Body, req.ContentLength = http.MethodPost, body, 1<<20
				_, err := tr.RoundTrip(req)
				require.Error(t, err) // of the context or of the body, whichever is noticed first
				return ctx.Err()
			},
		} {
			b := newBreaker(t)
			tr := newTransport(t, base, append(everything(b), WithFallback(func(*http.Request, error) (*http.Response, error) {
				t.Error(name + ": nobody is there for a fallback")
				return nil, io.EOF
			}))...)
			for range 25 {
				ctx, cancel := context.WithCancel(t.Context())
				err := leave(tr, ctx, cancel)
				cancel()
				require.ErrorIs(t, err, context.Canceled, name)
				assert.Equal(t, StatusClientClosedRequest, StatusOf(err))
			}
			assert.Equal(t, breaker.Closed, b.State(), name)
			assert.Zero(t, outcomesOf(b).failure, name)
			assert.Zero(t, tr.Snapshot().BodyErrors, name)
		}
	})
}

// One of a group of calls fails, which cancels its siblings; with only success and
// failure that opened the breaker, and a probe among them stayed out for ever.
// https://github.com/sony/gobreaker/issues/105
// https://github.com/onflow/flow-go/issues/4910
func TestGobreaker105_CancelledSiblingsAreAThirdOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const siblings = 1000
		b := newBreaker(t)
		tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("X-Fails") != "" {
				time.Sleep(time.Second) // until all are out
				return nil, io.ErrUnexpectedEOF
			}
			return hanging(req)
		}), everything(b)...)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for i := range siblings + 1 {
			group.Go(func() {
				req := get(ctx)
				if i == siblings {
					req.Header.Set("X-Fails", "1")
				}
				if _, err := tr.RoundTrip(req); !errors.Is(err, context.Canceled) {
					cancel()
				}
			})
		}
		group.Wait()
		assert.Equal(t, outcomes{failure: 1, ignored: siblings}, outcomesOf(b))
		assert.EqualValues(t, 1, b.Snapshot().Window.Total, "they are not in the ratio either")

		require.NoError(t, b.Trip(time.Second))
		time.Sleep(time.Second)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := tr.RoundTrip(get(ctx))
		require.ErrorIs(t, err, context.Canceled)
		assert.NoError(t, b.Peek(), "the probe's place is free")
	})
}

// A client whose RoundTripper knows only errors never tells its breaker of a 500.
// https://github.com/sony/gobreaker/pull/121
// https://github.com/apache/dubbo-go-pixiu/issues/869
// https://github.com/dapr/components-contrib/issues/1026
func TestGobreaker121_StatusesReachTheBreaker(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(map[string]int{"/404": 404, "/500": 500}[r.URL.Path])
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		target, err := url.Parse(srv.URL)
		require.NoError(t, err)
		proxy := &httputil.ReverseProxy{
			Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport:    newTransport(t, base, WithBreakers(newGroup(t), ByHost), WithFinishAt(Body)),
			ErrorHandler: ProxyErrorHandler(nil),
		}
		answer := func(path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			proxy.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			return w
		}
		for range 100 {
			require.Equal(t, 404, answer("/404").Code)
		}
		failures := 0
		for answer("/500").Code == 500 { // at half of all calls it opens
			failures++
			require.LessOrEqual(t, failures, 100)
		}
		assert.Equal(t, 100, failures)
		refused := answer("/404")
		assert.Equal(t, http.StatusServiceUnavailable, refused.Code)
		assert.NotEmpty(t, refused.Header().Get("Retry-After"))
	})
}

// Methods, paths and hosts that strangers choose were labels, and so filled the memory.
// https://github.com/golang/vulndb/issues/2113 (CVE-2023-45142)
// https://github.com/open-telemetry/opentelemetry-java-instrumentation/issues/4930
func TestVulndb2113_StrangersMakeNoLabels(t *testing.T) {
	requests := 100_000
	if testing.Short() {
		requests = 5_000
	}
	group := newGroup(t, breaker.WithMaxKeys(16))
	tr := newTransport(t, answering(200, ""), WithBreakers(group, ByHost), WithFinishAt(Body))
	for i := range requests {
		req := getFrom(t, t.Context(), fmt.Sprintf("http://h%d.test/%d?%d", i, i, i))
		req.Method = fmt.Sprintf("M%d", i)
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	series := map[string]bool{}
	for s := range tr.Collect {
		series[s.Desc.Name+strings.Join(s.Labels, ",")] = true
	}
	assert.Len(t, series, 5, "none of them has a label that a request filled in")
	for s := range group.Collect {
		series[s.Desc.Name+strings.Join(s.Labels, ",")] = true
	}
	assert.Less(t, len(series), 17*64, "at most 16 breakers and the one that the others share")
}

// An open breaker that logs no name, and has no metric of its state, helps nobody.
// https://github.com/traefik/traefik/issues/3590
func TestTraefik3590_TheNameIsEverywhere(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	group := newGroup(t, breaker.WithConsecutiveFailures(1), breaker.WithLogger(logger))
	tr := newTransport(t, answering(500, ""), WithName("orders"), WithLogger(logger), WithBreakers(group, ByHost),
		WithFallback(func(req *http.Request, _ error) (*http.Response, error) { return Respond(req, 200, nil, nil), nil }, OnRejected))
	for range 2 {
		_, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
	}
	const upstream = "upstream/http://upstream.test:80"
	for line := range strings.Lines(out.String()) {
		if !strings.Contains(line, upstream) {
			assert.Contains(t, line, "resource=orders", "each line says which")
			assert.Contains(t, line, "upstream=http://upstream.test:80")
		}
	}
	assert.Contains(t, out.String(), upstream)

	set := new(metrics.Set)
	require.NoError(t, set.Add("orders", tr))
	require.NoError(t, set.Add("upstream", group))
	var opened, served float64
	for s := range set.Collect {
		switch labels := strings.Join(s.Labels, ","); {
		case s.Desc.Name == "breaker_state" && strings.Contains(labels, upstream) && strings.HasSuffix(labels, "open") && !strings.HasSuffix(labels, "half_open"):
			opened += s.Value
		case s.Desc.Name == "transport_fallbacks" && labels == "orders,rejected,served":
			served += s.Value
		}
	}
	assert.EqualValues(t, 1, opened)
	assert.EqualValues(t, 1, served)
}

// One failure of one request is 100 %, and a count of failures is reached by traffic
// alone: neither must open a breaker of ratios.
// https://github.com/traefik/traefik/pull/13459
// https://github.com/unkeyed/unkey/pull/6568
func TestTraefik13459_FewCallsAndFewFailuresOpenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		b := newBreaker(t)
		tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			if fail {
				return answering(500, "")(req)
			}
			return answering(200, "")(req)
		}), WithBreaker(b))
		fail = true
		_, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, breaker.Closed, b.State(), "1 of 1")

		for i := range 8000 { // 800 a second for ten seconds, 0.14 % of them failures
			fail = i%714 == 0
			_, err := tr.RoundTrip(get(t.Context()))
			require.NoError(t, err)
			time.Sleep(time.Second / 800)
		}
		assert.Equal(t, breaker.Closed, b.State())
		assert.Greater(t, b.Snapshot().Totals.Failure, int64(11))
	})
}

// A new threshold while the breaker is open, and it was closed again.
// https://github.com/temporalio/temporal/pull/5867
func TestTemporal5867_ReconfiguringKeepsTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := newGroup(t, breaker.WithConsecutiveFailures(1), breaker.WithOpenFor(time.Minute), breaker.WithJitter(0))
		status := 500
		tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			return answering(status, "")(req)
		}), WithBreakers(group, ByHost))
		_, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		config := group.Config()
		config.Rules[0].Count = 100
		require.NoError(t, group.Update(config))
		_, err = tr.RoundTrip(get(t.Context()))
		require.ErrorIs(t, err, breaker.ErrOpen, "still open")

		status = 200
		time.Sleep(time.Minute)
		_, err = tr.RoundTrip(get(t.Context()))
		require.NoError(t, err, "and half-open when it would have been")
	})
}

// Where policies are nested, a refusal of the inner one opened the outer one, or was
// waited for and tried again.
// https://github.com/resilience4j/resilience4j/issues/1657
// https://github.com/resilience4j/resilience4j/issues/515
// https://github.com/resilience4j/resilience4j/issues/920
func TestResilience4j1657_RefusalsFurtherInAreNotTheUpstreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		inner := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			calls++
			return answering(200, "")(req)
		}), WithBreaker(openBreaker(t, time.Hour)))
		asked := 0
		counting := baseFunc(func(req *http.Request) (*http.Response, error) {
			asked++
			return inner.RoundTrip(req)
		})
		outer := newBreaker(t, breaker.WithConsecutiveFailures(1))
		tr := newTransport(t, counting, WithBreaker(outer), WithAttemptTimeout(time.Minute), WithTotalTimeout(time.Minute), WithFinishAt(Body))
		start := time.Now()
		for range 100 {
			_, err := tr.RoundTrip(get(t.Context()))
			require.ErrorIs(t, err, breaker.ErrOpen)
			var refused sluice.Rejection
			require.ErrorAs(t, err, &refused)
		}
		assert.Equal(t, breaker.Closed, outer.State())
		assert.Equal(t, outcomes{ignored: 100}, outcomesOf(outer))
		assert.Equal(t, 100, asked, "each once")
		assert.Zero(t, calls)
		assert.Equal(t, start, time.Now(), "and none waited")
	})
}
