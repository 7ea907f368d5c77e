package httpguard

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// A request belongs to its caller: an outer layer may send it again, and net/http's
// write loop may still be reading it when RoundTrip has returned. A wrapper that
// replaces Body on the caller's own pointer, as go-retryablehttp 0.7.8 and
// failsafehttp 0.9.8 do, races with both.
func TestC01_RequestIsNeverMutated(t *testing.T) {
	for name, opts := range map[string][]Option{
		"nothing":         nil,
		"breaker":         {WithBreaker(newBreaker(t))},
		"breakers":        {WithBreakers(newGroup(t), ByHost)},
		"attempt timeout": {WithAttemptTimeout(time.Minute)},
		"fallback":        {WithFallback(func(*http.Request, error) (*http.Response, error) { return nil, io.EOF })},
		"all": {
			WithBreakers(newGroup(t), ByHost), WithAttemptTimeout(time.Minute),
			WithFallback(func(*http.Request, error) (*http.Response, error) { return nil, io.EOF }),
			WithClassifier(func(*http.Request, *http.Response, error) sluice.Outcome { return 0 }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var reading sync.WaitGroup
			late := baseFunc(func(req *http.Request) (*http.Response, error) {
				reading.Go(func() { // as a transport may when the server answers early
					_, _ = io.Copy(io.Discard, req.Body)
					_ = req.Body.Close()
				})
				return response(req, http.StatusOK, "answer"), nil
			})
			tr := newTransport(t, late, opts...)
			req, body := post(t.Context(), strings.Repeat("x", 1<<16))
			req.Header.Set("X-Mine", "value")
			req.Trailer = http.Header{"X-Sum": nil}
			before, header := *req, maps.Clone(req.Header)

			resp, err := tr.RoundTrip(req)
			require.NoError(t, err)
			assert.Equal(t, before, *req, "while the base may still be reading")
			assert.Equal(t, header, req.Header)
			assert.Same(t, body, req.Body)
			assert.Equal(t, "answer", readAll(t, resp))
			reading.Wait()
			assert.Equal(t, before, *req, "and afterwards")
			assert.EqualValues(t, 1, body.closes.Load())
		})
	}
}

// What needs nothing of its own is passed on as it is, not copied.
func TestC01_RequestIsPassedOnUncopied(t *testing.T) {
	var got *http.Request
	base := baseFunc(func(req *http.Request) (*http.Response, error) {
		got = req
		return answering(http.StatusOK, "")(req)
	})
	rereadable := func() *http.Request {
		req, err := http.NewRequest(http.MethodPost, "http://upstream.test/", strings.NewReader("body"))
		require.NoError(t, err)
		return req
	}
	for name, opts := range map[string][]Option{
		"nothing":  nil,
		"breaker":  {WithBreaker(newBreaker(t))},
		"breakers": {WithBreakers(newGroup(t), ByHost)},
		"fallback": {WithFallback(func(*http.Request, error) (*http.Response, error) { return nil, io.EOF }, OnRejected)},
	} {
		tr := newTransport(t, base, opts...)
		for _, req := range []*http.Request{get(t.Context()), rereadable()} {
			_, err := tr.RoundTrip(req)
			require.NoError(t, err)
			assert.Same(t, req, got, name)
		}
	}
}

// The contract of RoundTripper: Body is always closed, also on errors. Where the
// base never gets the request, nobody else would: found open in
// https://github.com/quic-go/quic-go/issues/4873 and in failsafe-go's breaker.
func TestC02_RequestBodyIsClosedOnEveryEarlyReturn(t *testing.T) {
	never := baseFunc(func(*http.Request) (*http.Response, error) {
		t.Error("the base was called")
		return nil, io.EOF
	})
	done, cancel := context.WithCancel(t.Context())
	cancel()
	serve := func(req *http.Request, _ error) (*http.Response, error) { return Respond(req, 200, nil, nil), nil }
	for name, c := range map[string]struct {
		ctx  context.Context
		opts []Option
	}{
		"breaker open":               {t.Context(), []Option{WithBreaker(openBreaker(t, time.Hour))}},
		"breaker open, fallback":     {t.Context(), []Option{WithBreaker(openBreaker(t, time.Hour)), WithFallback(serve)}},
		"breaker open, limit":        {t.Context(), []Option{WithBreaker(openBreaker(t, time.Hour)), WithAttemptTimeout(time.Hour)}},
		"context done":               {done, []Option{WithBreaker(newBreaker(t))}},
		"context done, no breaker":   {done, []Option{WithAttemptTimeout(time.Hour)}},
		"context done, without keys": {done, []Option{WithBreakers(newGroup(t), KeyFunc(func(*http.Request) string { return "" }))}},
		"key function panics":        {t.Context(), []Option{WithBreakers(newGroup(t), KeyFunc(func(*http.Request) string { panic("key") }))}},
		"key function ends the goroutine": {t.Context(), []Option{WithBreakers(newGroup(t), KeyFunc(func(*http.Request) string {
			runtime.Goexit()
			return ""
		}))}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTransport(t, never, c.opts...)
			req, body := post(c.ctx, "body")
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { _ = recover() }()
				_, _ = tr.RoundTrip(req)
			}()
			<-ended
			assert.EqualValues(t, 1, body.closes.Load())
		})
	}
}

// With a nil Body there is nothing to close.
func TestC02_NoBodyNoClose(t *testing.T) {
	tr := newTransport(t, answering(200, ""), WithBreaker(openBreaker(t, time.Hour)))
	_, err := tr.RoundTrip(get(t.Context()))
	require.ErrorIs(t, err, breaker.ErrOpen)
}

// A response is the caller's, whatever its status. go-retryablehttp 0.7.8 eats the
// last one and says "giving up after 3 attempt(s)".
func TestC06_LastResponseIsTheCallers(t *testing.T) {
	for _, status := range []int{200, 204, 304, 404, 429, 500, 503} {
		var given *http.Response
		base := baseFunc(func(req *http.Request) (*http.Response, error) {
			given = response(req, status, "the upstream's own words")
			return given, nil
		})
		for name, opts := range map[string][]Option{
			"breaker": {WithBreaker(newBreaker(t))},
			"all": {WithBreaker(newBreaker(t)), WithAttemptTimeout(time.Hour), WithFallback(func(_ *http.Request, cause error) (*http.Response, error) {
				return nil, cause
			})},
		} {
			resp, err := newTransport(t, base, opts...).RoundTrip(get(t.Context()))
			require.NoError(t, err, name)
			assert.Same(t, given, resp, name)
			assert.Equal(t, status, resp.StatusCode)
			assert.Equal(t, "the upstream's own words", readAll(t, resp), name)
		}
	}
}

// net/http drops a response that comes with an error, without closing it:
// https://github.com/hashicorp/go-retryablehttp/issues/179 and 299.
func TestC06_NeverAResponseAndAnError(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Hour} {
		var given *http.Response
		broken := errors.New("broken")
		base := baseFunc(func(req *http.Request) (*http.Response, error) {
			given = response(req, 200, "body")
			return given, broken
		})
		opts := []Option{WithBreaker(newBreaker(t))}
		if limit > 0 {
			opts = append(opts, WithAttemptTimeout(limit))
		}
		resp, err := newTransport(t, base, opts...).RoundTrip(get(t.Context()))
		assert.Nil(t, resp)
		assert.Same(t, broken, err)
		assert.EqualValues(t, 1, given.Body.(*watchedBody).closes.Load())
	}
}

// Mocks return nil for an empty body, and broken ones nothing at all; net/http's
// client accepts the one and refuses the other: https://github.com/golang/go/issues/38095
func TestC12_BaseReturnsLessThanItShould(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		resp   *http.Response
		want   string
	}{
		"neither":                      {http.MethodGet, nil, "httpguard: httpguard.baseFunc returned neither a response nor an error"},
		"no body":                      {http.MethodGet, &http.Response{StatusCode: 200}, ""},
		"no body of a HEAD with size":  {http.MethodHead, &http.Response{StatusCode: 200, ContentLength: 9}, ""},
		"no body but the promise of 9": {http.MethodGet, &http.Response{StatusCode: 200, ContentLength: 9}, "returned a response of 9 bytes without a body"},
	} {
		for _, opts := range [][]Option{nil, {WithBreaker(newBreaker(t)), WithAttemptTimeout(time.Hour)}} {
			base := baseFunc(func(*http.Request) (*http.Response, error) { return c.resp, nil })
			req := get(t.Context())
			req.Method = c.method
			if c.resp != nil {
				c.resp.Body = nil
			}
			resp, err := newTransport(t, base, opts...).RoundTrip(req)
			if c.want != "" {
				assert.Nil(t, resp, name)
				assert.ErrorContains(t, err, c.want, name)
				continue
			}
			require.NoError(t, err, name)
			assert.Empty(t, readAll(t, resp), name)
		}
	}
}

type closingBase struct {
	baseFunc
	closed int
}

func (b *closingBase) CloseIdleConnections() { b.closed++ }

// http.Client.CloseIdleConnections does nothing at all unless its Transport has the
// method: wrappers that lack it keep connections open for ever.
func TestC13_CloseIdleConnectionsReachesTheBase(t *testing.T) {
	base := &closingBase{}
	tr := newTransport(t, base)
	(&http.Client{Transport: tr}).CloseIdleConnections()
	assert.Equal(t, 1, base.closed)
	assert.Same(t, base, tr.Unwrap())

	newTransport(t, answering(200, "")).CloseIdleConnections() // a base that cannot is left alone
}

func TestBypass_PassesByEverything(t *testing.T) {
	var sent *http.Request
	base := baseFunc(func(req *http.Request) (*http.Response, error) {
		sent = req
		return response(req, 503, ""), nil
	})
	b := openBreaker(t, time.Hour)
	tr := newTransport(t, base, WithBreaker(b), WithAttemptTimeout(time.Hour),
		WithFallback(func(*http.Request, error) (*http.Response, error) { return nil, errors.New("asked") }))
	before := b.Snapshot()
	req, _ := post(sluice.Bypass(t.Context()), "ping")
	resp, err := tr.RoundTrip(req)
	require.NoError(t, err)
	assert.Equal(t, 503, resp.StatusCode)
	assert.Same(t, req, sent)
	assert.Equal(t, before, b.Snapshot(), "neither refused nor counted")
	assert.EqualValues(t, 1, tr.Snapshot().Bypassed)
}

// The order is fallback, breaker, attempt timeout, base, whatever that of the
// options: a timeout counts for the breaker, and the fallback sees both.
func TestOrder_IsFixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.WithConsecutiveFailures(1))
		var causes []error
		tr := newTransport(t, baseFunc(hanging),
			WithAttemptTimeout(time.Second),
			WithBreaker(b),
			WithFallback(func(req *http.Request, cause error) (*http.Response, error) {
				causes = append(causes, cause)
				return Respond(req, 200, nil, []byte("stale")), nil
			}))
		for range 2 {
			resp, err := tr.RoundTrip(get(t.Context()))
			require.NoError(t, err)
			assert.Equal(t, "stale", readAll(t, resp))
		}
		require.Len(t, causes, 2)
		assert.ErrorIs(t, causes[0], sluice.ErrTimeout, "the base ran, and out of time")
		assert.ErrorIs(t, causes[1], breaker.ErrOpen, "so the breaker refused the next")
		assert.EqualValues(t, 0, b.Snapshot().Totals.Success, "a fallback says nothing good about the upstream")
	})
}

// Around http.Client everything a user of errors.Is and errors.As wants is there.
func TestClient_SeesTheRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: newTransport(t, answering(200, ""), WithBreaker(openBreaker(t, time.Minute)))}
		_, err := client.Get("http://upstream.test/")
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.ErrorIs(t, err, sluice.ErrRejected)
		var refused sluice.Rejection
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "upstream", refused.Resource())
		assert.Equal(t, time.Minute, refused.RetryAfter())
		var timeout interface{ Timeout() bool }
		require.ErrorAs(t, err, &timeout)
		assert.False(t, timeout.Timeout(), "a refusal is no timeout")
	})
}

// The upstream's breaker is asked about all the calls there are: what was admitted
// was settled, whoever cancels, panics or times out.
func TestConservation_EveryAdmittedCallIsSettled(t *testing.T) {
	const callers, calls = 8, 200
	b := newBreaker(t, breaker.WithErrorCount(1<<30), breaker.WithWindow(time.Hour, 10))
	base := baseFunc(func(req *http.Request) (*http.Response, error) {
		closeBody(req.Body)
		switch req.Header.Get("X-End") {
		case "panic":
			panic("base")
		case "error":
			return nil, io.ErrUnexpectedEOF
		case "500", "429":
			return response(req, map[string]int{"500": 500, "429": 429}[req.Header.Get("X-End")], "body"), nil
		}
		return response(req, 200, "body"), nil
	})
	tr := newTransport(t, base, WithBreaker(b), WithAttemptTimeout(time.Hour))
	ends := []string{"ok", "error", "500", "429", "panic"}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := range calls {
				req, _ := post(t.Context(), "body")
				req.Header.Set("X-End", ends[i%len(ends)])
				func() {
					defer func() { _ = recover() }()
					if resp, err := tr.RoundTrip(req); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
				}()
			}
		})
	}
	all.Wait()
	each := int64(callers * calls / len(ends))
	totals := b.Snapshot().Totals
	assert.Equal(t, each, totals.Success)
	assert.Equal(t, 3*each, totals.Failure)
	assert.Equal(t, each, totals.Throttled)
	assert.Zero(t, totals.Ignored)
}

// Nothing of ours is left behind by real connections, whichever way a call ends.
func TestNoGoroutineIsLeft(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hang":
			<-r.Context().Done()
		case "/503":
			w.WriteHeader(503)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 1000))
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		before := runtime.NumGoroutine()
		tr := newTransport(t, base, WithBreakers(newGroup(t, breaker.WithErrorCount(1<<30)), ByHost), WithAttemptTimeout(20*time.Millisecond),
			WithFallback(func(req *http.Request, _ error) (*http.Response, error) { return Respond(req, 200, nil, nil), nil }))
		client := &http.Client{Transport: tr}
		for i := range 60 {
			resp, err := client.Get(srv.URL + []string{"/", "/hang", "/503"}[i%3])
			require.NoError(t, err)
			if i%2 == 0 {
				_, _ = io.Copy(io.Discard, resp.Body)
			}
			require.NoError(t, resp.Body.Close())
		}
		client.CloseIdleConnections()
		srv.CloseClientConnections()
		for runtime.NumGoroutine() > before { // connections end in their own time; one left for ever would time the test out
			time.Sleep(time.Millisecond)
		}
	})
}

// Where a copy is needed, it differs in its context and its watched body, and in
// nothing else: net/http's own replays need GetBody (https://github.com/golang/go/issues/18241),
// and old clients still cancel by channel.
func TestC03_CopiesKeepAllTheRest(t *testing.T) {
	type key struct{}
	var sent *http.Request
	tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
		sent = req
		return answering(200, "")(req)
	}), WithBreaker(newBreaker(t)), WithAttemptTimeout(time.Hour))
	ctx := context.WithValue(t.Context(), key{}, "of the caller")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://upstream.test/", strings.NewReader("body"))
	require.NoError(t, err)
	//lint:ignore SA1019 it is still there
	req.Cancel = make(chan struct{})
	_, err = tr.RoundTrip(req)
	require.NoError(t, err)
	require.NotSame(t, req, sent)
	assert.Equal(t, "of the caller", sent.Context().Value(key{}))
	assert.Equal(t, req.Cancel, sent.Cancel) //lint:ignore SA1019 it is still there
	assert.NotNil(t, sent.GetBody)
	assert.Equal(t, req.Body, sent.Body, "one that can be had again is not watched")
	assert.Equal(t, req.ContentLength, sent.ContentLength)

	upload, body := post(ctx, "body")
	_, err = tr.RoundTrip(upload)
	require.NoError(t, err)
	assert.NotSame(t, body, sent.Body)
	assert.EqualValues(t, 4, sent.ContentLength)
	assert.EqualValues(t, 1, body.closes.Load())
}
