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
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/ratelimit"
)

type rejection struct{ wait time.Duration }

func (rejection) Error() string               { return "internal-name refused" }
func (rejection) Is(target error) bool        { return target == sluice.ErrRejected }
func (rejection) Resource() string            { return "internal-name" }
func (rejection) Policy() string              { return "test" }
func (rejection) Reason() string              { return "full" }
func (r rejection) RetryAfter() time.Duration { return r.wait }

func TestP2_StatusOf(t *testing.T) {
	for want, errs := range map[int][]error{
		200: {nil},
		503: {sluice.ErrRejected, rejection{}, fmt.Errorf("call: %w", breaker.ErrOpen), &url.Error{Err: rejection{time.Second}}},
		504: {sluice.ErrTimeout, context.DeadlineExceeded, &limitError{"no answer", time.Second}, netTimeout{}, &url.Error{Err: sluice.ErrTimeout}},
		499: {context.Canceled, fmt.Errorf("call: %w", context.Canceled)},
		502: {io.EOF, io.ErrUnexpectedEOF, errors.New("connection refused")},
	} {
		for _, err := range errs {
			if errors.Is(err, breaker.ErrOpen) {
				continue // the sentinel alone is not what a breaker returns
			}
			assert.Equal(t, want, StatusOf(err), "%v", err)
		}
	}
	_, err := newTransport(t, nil, WithBreaker(openBreaker(t, time.Hour))).RoundTrip(get(t.Context()))
	assert.Equal(t, 503, StatusOf(err))
}

// To a 503, clients of a service that is well would stop calling it, and balancers take
// it out; who asks for too much is told so.
func TestP2_ALimitOfOursIsA429(t *testing.T) {
	l := sluice.Must(ratelimit.New("orders", ratelimit.Every(90*time.Second), ratelimit.WithBurst(1)))
	require.True(t, l.Allow())
	err := l.Take(1).Err()
	assert.Equal(t, 429, StatusOf(fmt.Errorf("call: %w", err)))
	w := httptest.NewRecorder()
	Refuse(w, httptest.NewRequest("GET", "/", nil), err)
	assert.Equal(t, 429, w.Code)
	assert.Equal(t, "90", w.Header().Get("Retry-After"))

	w = httptest.NewRecorder()
	Refuse(w, httptest.NewRequest("GET", "/", nil), l.Take(2).Err())
	assert.Equal(t, 429, w.Code)
	assert.NotContains(t, w.Header(), "Retry-After", "it never helps")
}

// Ceil, at least 1: proxies have sent 0 and sent everybody back at once,
// https://github.com/traefik/traefik/issues/8573
func TestP2_RetryAfterIsAtLeastOneSecondAndRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0:                       "1", // not known
		1:                       "1",
		time.Second:             "1",
		time.Second + 1:         "2",
		2900 * time.Millisecond: "3",
		time.Hour:               "3600",
		1<<63 - 1:               "9223372037",
		-1:                      "", // never
	} {
		rec := httptest.NewRecorder()
		ProxyErrorHandler(nil)(rec, get(t.Context()), rejection{wait})
		assert.Equal(t, 503, rec.Code)
		assert.Equal(t, want, rec.Header().Get("Retry-After"), "%v", wait)
	}
}

func TestP2_AnswersTellNothingOfTheInside(t *testing.T) {
	for _, err := range []error{rejection{time.Second}, sluice.ErrTimeout, errors.New("dial tcp 10.1.2.3:80: internal-name refused")} {
		rec := httptest.NewRecorder()
		ProxyErrorHandler(nil)(rec, get(t.Context()), err)
		assert.Equal(t, http.StatusText(rec.Code)+"\n", rec.Body.String())
		assert.Equal(t, "no-store", rec.Header().Get("Cache-Control"))
		assert.Equal(t, rec.Code == 503, rec.Header().Get("Retry-After") != "")
		assert.NotContains(t, fmt.Sprint(rec.Header()), "internal")
	}
}

// Who ended the call decides, whatever the error says.
func TestP2_StatusByWhoEndedTheCall(t *testing.T) {
	left, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelCause := context.WithCancelCause(t.Context())
	cancelCause(sluice.ErrTimeout)
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want int
	}{
		"client left, the error says so":  {left, context.Canceled, 499},
		"client left, the error lies":     {left, io.ErrUnexpectedEOF, 499},
		"client left before a refusal":    {left, rejection{}, 499},
		"a limit of ours further out":     {late, context.Canceled, 504},
		"cancelled, but the client stays": {t.Context(), context.Canceled, 502},
	} {
		assert.Equal(t, c.want, statusFor(c.ctx, c.err), name)
	}
	rec := httptest.NewRecorder()
	ProxyErrorHandler(nil)(rec, get(left), context.Canceled)
	assert.Zero(t, rec.Body.Len())
	assert.Empty(t, rec.Header(), "nothing written")
	assert.False(t, rec.Flushed)
}

// syncBuffer is a log that handlers of a server may write to.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// All of it through a real proxy: what its client sees, over both protocols.
func TestP2_ThroughAReverseProxy(t *testing.T) {
	arrived := make(chan struct{}, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			if r.Header.Get("X-Patient") != "" {
				arrived <- struct{}{}
			}
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, "hello")
	}))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	dead, err := url.Parse("http://127.0.0.1:1")
	require.NoError(t, err)

	var log syncBuffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b := newBreaker(t, breaker.WithErrorCount(1<<30))
	tr := newTransport(t, nil, WithBreaker(b), WithAttemptTimeout(50*time.Millisecond))
	patient := newTransport(t, nil, WithBreaker(b)) // has no limit
	ended := make(chan any, 1)
	handler := func(w http.ResponseWriter, r *http.Request) {
		proxy := httputil.ReverseProxy{
			Rewrite: func(p *httputil.ProxyRequest) {
				to := target
				if p.In.URL.Path == "/dead" {
					to = dead
				}
				p.SetURL(to)
			},
			Transport:    tr,
			ErrorHandler: ProxyErrorHandler(logger),
		}
		if r.URL.Path != "/hang" {
			proxy.Transport = patient
		}
		if r.Header.Get("X-Patient") != "" {
			proxy.Transport = patient
			defer func() {
				p := recover()
				ended <- p
				if p != nil {
					panic(p)
				}
			}()
		}
		proxy.ServeHTTP(w, r)
	}
	overBoth(t, handler, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		client := &http.Client{Transport: base}
		ask := func(path string) (*http.Response, string) {
			resp, err := client.Get(srv.URL + path)
			require.NoError(t, err)
			return resp, readAll(t, resp)
		}
		resp, body := ask("/hang?secret=1")
		assert.Equal(t, 504, resp.StatusCode)
		assert.Equal(t, "Gateway Timeout\n", body)
		resp, _ = ask("/dead")
		assert.Equal(t, 502, resp.StatusCode)

		ctx, cancel := context.WithCancel(t.Context())
		req := getFrom(t, ctx, srv.URL+"/hang")
		req.Header.Set("X-Patient", "very")
		before := b.Snapshot().Totals
		go func() {
			<-arrived
			cancel()
		}()
		_, err := client.Do(req)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, any(http.ErrAbortHandler), <-ended, "not even an empty 200 is sent")
		after := b.Snapshot().Totals
		assert.Equal(t, before.Failure, after.Failure)
		assert.Equal(t, before.Ignored+1, after.Ignored)

		require.NoError(t, b.Trip(90*time.Second))
		resp, body = ask("/")
		b.Reset()
		assert.Equal(t, 503, resp.StatusCode)
		assert.Equal(t, "Service Unavailable\n", body)
		assert.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
		assert.Equal(t, "90", resp.Header.Get("Retry-After"))
	})
	text := log.String()
	for _, want := range []string{
		"level=WARN msg=\"proxied call ended with an error\" status=504 method=GET upstream=" + upstream.URL + " path=/hang",
		"level=WARN msg=\"proxied call ended with an error\" status=502 method=GET upstream=http://127.0.0.1:1 path=/dead",
		"level=DEBUG msg=\"proxied call ended with an error\" status=499",
		"level=DEBUG msg=\"proxied call ended with an error\" status=503",
	} {
		assert.Contains(t, text, want)
	}
	assert.False(t, strings.Contains(text, "secret"), "queries are not logged")
}
