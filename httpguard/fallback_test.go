package httpguard

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

func TestF_FallbackIsAskedForItsCausesOnly(t *testing.T) {
	cancelled := func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		return ctx
	}
	for name, c := range map[string]struct {
		base  baseFunc
		open  bool
		ctx   func(context.Context) context.Context
		cause Cause // 0: nothing to replace
	}{
		"success":         {base: answering(200, ""), cause: 0},
		"not found":       {base: answering(404, ""), cause: 0},
		"throttled":       {base: answering(429, ""), cause: 0},
		"refused":         {base: answering(200, ""), open: true, cause: OnRejected},
		"attempt timeout": {base: hanging, cause: OnTimeout},
		"network timeout": {base: failing(netTimeout{}), cause: OnTimeout},
		"500":             {base: answering(500, "sorry"), cause: OnFailure},
		"503":             {base: answering(503, "sorry"), cause: OnFailure},
		"connection":      {base: failing(errors.New("connection refused")), cause: OnError},
		"caller left":     {base: hanging, ctx: cancelled, cause: 0},
		"caller's deadline": {base: hanging, ctx: func(ctx context.Context) context.Context {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			context.AfterFunc(ctx, cancel)
			return ctx
		}, cause: OnTimeout},
		"limit further out": {base: hanging, ctx: func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(sluice.ErrTimeout) })
			return ctx
		}, cause: OnTimeout},
	} {
		for _, guarded := range []bool{true, false} {
			if c.open && !guarded {
				continue
			}
			for _, on := range allCauses {
				t.Run(name+" "+on.String(), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						opts := []Option{WithAttemptTimeout(time.Minute)}
						if guarded {
							b := newBreaker(t)
							if c.open {
								require.NoError(t, b.Trip(time.Hour))
							}
							opts = append(opts, WithBreaker(b))
						}
						var cause error
						tr := newTransport(t, c.base, append(opts, WithFallback(func(req *http.Request, err error) (*http.Response, error) {
							cause = err
							return Respond(req, 203, nil, []byte("stale")), nil
						}, on))...)
						ctx := t.Context()
						if c.ctx != nil {
							ctx = c.ctx(ctx)
						}
						resp, err := tr.RoundTrip(get(ctx))
						served := map[Cause]uint64{}
						for _, f := range tr.Snapshot().Fallbacks {
							served[f.Cause] = f.Served
						}
						if c.cause != on {
							assert.NoError(t, cause)
							if err == nil {
								assert.NotEqual(t, 203, resp.StatusCode)
								require.NoError(t, resp.Body.Close())
							}
							assert.Equal(t, map[Cause]uint64{OnRejected: 0, OnTimeout: 0, OnFailure: 0, OnError: 0}, served)
							return
						}
						require.NoError(t, err)
						assert.Equal(t, "stale", readAll(t, resp))
						require.Error(t, cause)
						assert.EqualValues(t, 1, served[on])
						var status *StatusError
						assert.Equal(t, on == OnFailure, errors.As(cause, &status))
						assert.Equal(t, on == OnRejected, errors.Is(cause, sluice.ErrRejected))
					})
				})
			}
		}
	}
}

// Without causes, all of them.
func TestF_FallbackWithoutCausesIsAskedForAll(t *testing.T) {
	tr := newTransport(t, failing(io.EOF), WithFallback(func(req *http.Request, _ error) (*http.Response, error) {
		return Respond(req, 200, nil, nil), nil
	}))
	assert.Equal(t, [5]bool{false, true, true, true, true}, tr.fallback.on)
	_, err := tr.RoundTrip(get(t.Context()))
	require.NoError(t, err)
}

// The fallback's success is none of the upstream's, and a failing upstream opens its
// breaker though every caller is served.
func TestF_FallbackDoesNotHideTheFailureFromTheBreaker(t *testing.T) {
	b := newBreaker(t)
	tr := newTransport(t, answering(500, ""), WithBreaker(b), WithFallback(func(req *http.Request, _ error) (*http.Response, error) {
		return Respond(req, 200, nil, nil), nil
	}))
	for range 100 {
		resp, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, 200, resp.StatusCode)
	}
	s := b.Snapshot()
	assert.Equal(t, breaker.Open, s.State)
	assert.EqualValues(t, 20, s.Totals.Failure)
	assert.Zero(t, s.Totals.Success)
	fallbacks := tr.Snapshot().Fallbacks
	assert.EqualValues(t, 80, fallbacks[OnRejected-1].Served)
	assert.EqualValues(t, 20, fallbacks[OnFailure-1].Served)
}

// A fallback that has nothing for this cause gives it back. The caller then has what
// it would have without one: the response, its body included, or the error.
func TestF_DeclinedFallbackChangesNothing(t *testing.T) {
	decline := WithFallback(func(_ *http.Request, cause error) (*http.Response, error) { return nil, cause })
	resp, err := newTransport(t, answering(503, "sorry"), decline).RoundTrip(get(t.Context()))
	require.NoError(t, err)
	assert.Equal(t, 503, resp.StatusCode)
	assert.Equal(t, "sorry", readAll(t, resp))

	refused := errors.New("connection refused")
	_, err = newTransport(t, failing(refused), decline).RoundTrip(get(t.Context()))
	assert.Same(t, refused, err)

	own := errors.New("cache is empty")
	tr := newTransport(t, failing(refused), WithFallback(func(*http.Request, error) (*http.Response, error) { return nil, own }))
	_, err = tr.RoundTrip(get(t.Context()))
	assert.Same(t, own, err)
	assert.EqualValues(t, 1, tr.Snapshot().Fallbacks[OnError-1].Declined)
}

// What a fallback must not return is an error that names the cause; nothing of it
// stays open.
func TestF_MalformedAnswersAreErrors(t *testing.T) {
	refused := errors.New("connection refused")
	for name, c := range map[string]struct {
		resp *http.Response
		err  error
		want string
	}{
		"nothing":     {nil, nil, "httpguard: the fallback returned neither a response nor an error for: connection refused"},
		"status 0":    {&http.Response{}, nil, "httpguard: the fallback returned status 0, which is not in [200, 999], for: connection refused"},
		"status 103":  {&http.Response{StatusCode: 103}, nil, "httpguard: the fallback returned status 103, which is not in [200, 999], for: connection refused"},
		"status 1000": {&http.Response{StatusCode: 1000}, nil, "httpguard: the fallback returned status 1000, which is not in [200, 999], for: connection refused"},
		"both":        {&http.Response{StatusCode: 200}, refused, "connection refused"},
	} {
		body := &watchedBody{Reader: strings.NewReader("")}
		if c.resp != nil {
			c.resp.Body = body
		}
		tr := newTransport(t, failing(refused), WithFallback(func(*http.Request, error) (*http.Response, error) { return c.resp, c.err }))
		resp, err := tr.RoundTrip(get(t.Context()))
		assert.Nil(t, resp, name)
		assert.EqualError(t, err, c.want, name)
		assert.ErrorIs(t, err, refused, name)
		if c.resp != nil {
			assert.EqualValues(t, 1, body.closes.Load(), name)
		}
	}
}

// A synthetic response without a Proto, a Header or a Body makes clients and proxies
// stumble.
func TestC20_SyntheticResponsesAreComplete(t *testing.T) {
	reader := func(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
	mine := get(t.Context())
	for name, c := range map[string]struct {
		given  http.Response
		status string
		length int64
		body   string
	}{
		"status only":          {http.Response{StatusCode: 200}, "200 OK", 0, ""},
		"unknown status":       {http.Response{StatusCode: 299}, "299 ", 0, ""},
		"body without length":  {http.Response{StatusCode: 200, Body: reader("abc")}, "200 OK", -1, "abc"},
		"body with length":     {http.Response{StatusCode: 200, Body: reader("abc"), ContentLength: 3}, "200 OK", 3, "abc"},
		"what is there stays":  {http.Response{StatusCode: 200, Status: "200 Fine", Proto: "HTTP/2.0", ProtoMajor: 2, Header: http.Header{"A": {"b"}}, Request: mine}, "200 Fine", 0, ""},
		"http.NoBody is empty": {http.Response{StatusCode: 200, Body: http.NoBody}, "200 OK", 0, ""},
	} {
		given := c.given
		tr := newTransport(t, failing(io.EOF), WithFallback(func(*http.Request, error) (*http.Response, error) { return &given, nil }))
		req := get(t.Context())
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err, name)
		assert.Equal(t, c.status, resp.Status, name)
		assert.Equal(t, c.length, resp.ContentLength, name)
		assert.NotNil(t, resp.Header, name)
		assert.NotZero(t, resp.ProtoMajor, name)
		assert.Equal(t, c.body, readAll(t, resp), name)
		if c.given.Request == nil {
			assert.Same(t, req, resp.Request, name)
		} else {
			assert.Same(t, c.given.Request, resp.Request, name)
			assert.Equal(t, "HTTP/2.0", resp.Proto)
			assert.Equal(t, "b", resp.Header.Get("A"))
		}
	}
}

// What Respond makes, another HTTP implementation can write and read.
func TestC20_RespondSurvivesTheWire(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		for _, status := range []int{200, 203, 204, 304, 404, 503} {
			for _, body := range []string{"", "body"} {
				req := get(t.Context())
				req.Method = method
				header := http.Header{"X-Mine": {"v"}}
				resp := Respond(req, status, header, []byte(body))
				assert.Equal(t, http.Header{"X-Mine": {"v"}}, header, "the caller's map is left alone")
				var wire bytes.Buffer
				require.NoError(t, resp.Write(&wire))
				read, err := http.ReadResponse(bufio.NewReader(&wire), req)
				require.NoError(t, err)
				want := body
				if method == http.MethodHead || status == 204 || status == 304 {
					want = ""
				}
				assert.Equal(t, want, readAll(t, read), "%s %d", method, status)
				assert.Equal(t, resp.Status, read.Status)
				assert.Equal(t, "v", read.Header.Get("X-Mine"))
				assert.Zero(t, wire.Len())
			}
		}
	}
	assert.NotNil(t, Respond(get(t.Context()), 200, nil, nil).Header)
}

// An abandoned response that is not drained and closed holds its connection: with one
// connection for each host the next call waits for ever.
// https://github.com/gojek/heimdall/issues/45
func TestC05_ReplacedResponsesAreDrainedAndClosed(t *testing.T) {
	overBothInABubble(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
		_, _ = io.WriteString(w, strings.Repeat("x", 10<<10))
	}, func(t *testing.T, base *http.Transport) {
		base.MaxConnsPerHost = 1
		tr := newTransport(t, base, WithFallback(func(req *http.Request, _ error) (*http.Response, error) {
			return Respond(req, 200, nil, nil), nil
		}, OnFailure))
		connections := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if !i.Reused {
				connections++
			}
		}})
		for range 10 {
			resp, err := tr.RoundTrip(get(ctx))
			require.NoError(t, err)
			assert.Equal(t, 200, resp.StatusCode)
		}
		assert.Equal(t, 1, connections, "the one connection served all")
		synctest.Wait()
	})
}

// A fallback that hangs must not take every caller with it.
func TestF_FallbacksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		tr := newTransport(t, failing(refused), WithFallbackLimit(2), WithFallback(func(req *http.Request, _ error) (*http.Response, error) {
			time.Sleep(time.Second)
			return Respond(req, 200, nil, nil), nil
		}))
		ended := make(chan error, 3)
		for range 3 {
			go func() {
				_, err := tr.RoundTrip(get(t.Context()))
				ended <- err
			}()
		}
		assert.Same(t, refused, <-ended, "the third gets what there is, at once")
		assert.NoError(t, <-ended)
		assert.NoError(t, <-ended)
		_, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err, "their places are free again")
		assert.Equal(t, FallbackSnapshot{Cause: OnError, Served: 3, Skipped: 1}, tr.Snapshot().Fallbacks[OnError-1])
	})
}

func TestF_FallbacksAreLoggedAtDebug(t *testing.T) {
	var out bytes.Buffer
	level := new(slog.LevelVar)
	level.Set(slog.LevelDebug)
	logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	decline := false
	tr := newTransport(t, failing(errors.New("connection refused")), WithName("orders"), WithLogger(logger),
		WithFallback(func(req *http.Request, cause error) (*http.Response, error) {
			if decline {
				return nil, cause
			}
			return Respond(req, 203, nil, nil), nil
		}))
	_, _ = tr.RoundTrip(get(t.Context()))
	decline = true
	_, _ = tr.RoundTrip(get(t.Context()))
	assert.Equal(t, `level=DEBUG msg="fallback served" resource=orders upstream=http://upstream.test:80 cause=error error="connection refused" status=203
level=DEBUG msg="fallback declined" resource=orders upstream=http://upstream.test:80 cause=error error="connection refused" answer="connection refused"
`, out.String())
	out.Reset()
	level.Set(slog.LevelInfo)
	_, _ = tr.RoundTrip(get(t.Context()))
	assert.Empty(t, out.String())
}

func TestCause_Text(t *testing.T) {
	for c, want := range map[Cause]string{0: "Cause(0)", OnRejected: "rejected", OnTimeout: "timeout", OnFailure: "failure", OnError: "error", 9: "Cause(9)"} {
		text, err := c.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}
