package httpguard

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// A refusal says that it is one, when to come again, that it must not be kept, and no
// more: names of guards and hosts are nobody's business outside.
func TestS14_RefusalTellsNothingOfTheInside(t *testing.T) {
	var drain Drain
	drain.Begin()
	full := newGate(t, WithName("secret"), WithMaxInFlight(1))
	require.True(t, full.slots.take())
	for name, h := range map[string]http.Handler{
		"breaker": newGate(t, WithName("secret"), WithBreaker(openBreaker(t, time.Minute))).Wrap(writing(200)),
		"full":    full.Wrap(writing(200)),
		"drain":   newGate(t, WithName("secret"), WithDrain(&drain)).Wrap(writing(200)),
		"handler": newGate(t).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			Refuse(w, r, openBreaker(t, time.Minute).Peek())
		})),
	} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, h.ServeHTTP, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
				resp, err := base.RoundTrip(getFrom(t, t.Context(), srv.URL))
				require.NoError(t, err)
				assert.Equal(t, 503, resp.StatusCode)
				assert.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
				assert.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
				seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
				require.NoError(t, err)
				assert.GreaterOrEqual(t, seconds, 1)
				assert.Equal(t, "Service Unavailable\n", readAll(t, resp))

				req := getFrom(t, t.Context(), srv.URL)
				req.Method = http.MethodHead
				resp, err = base.RoundTrip(req)
				require.NoError(t, err)
				assert.Equal(t, 503, resp.StatusCode)
				assert.Empty(t, readAll(t, resp))
			})
		})
	}
}

// Rounding down, or printing with "%.0f", makes a 0 of the last half second, and clients
// come back at once.
func TestS14_RetryAfterIsRoundedUpAndAtLeastOne(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Nanosecond:          "1",
		time.Second:              "1",
		time.Second + 1:          "2",
		29500 * time.Millisecond: "30",
		30 * time.Second:         "30",
	} {
		synctest.Test(t, func(t *testing.T) {
			b := openBreaker(t, wait)
			w := serve(newGate(t, WithBreaker(b)).Wrap(writing(200)), incoming(t.Context()))
			assert.Equal(t, want, w.Header().Get("Retry-After"), wait)
		})
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Refuse(w, r, never{})
	})
	assert.NotContains(t, serve(h, incoming(t.Context())).Header(), "Retry-After", "asking again is of no use")
}

// never is a refusal that will not change.
type never struct{}

func (never) Error() string             { return "never" }
func (never) Is(target error) bool      { return target == sluice.ErrRejected }
func (never) Resource() string          { return "never" }
func (never) Policy() string            { return "never" }
func (never) Reason() string            { return "never" }
func (never) RetryAfter() time.Duration { return -1 }

// Those that a full house has refused together should not come back together.
func TestS14_FullHouseSpreadsItsClients(t *testing.T) {
	g := newGate(t, WithMaxInFlight(1))
	require.True(t, g.slots.take())
	seen := map[string]bool{}
	for range 1000 {
		seen[serve(g.Wrap(writing(200)), incoming(t.Context())).Header().Get("Retry-After")] = true
	}
	assert.Equal(t, map[string]bool{"2": true, "3": true}, seen)
	assert.EqualValues(t, 1000, g.Snapshot().InFlight.Refused)
}

func TestWithProblemJSON(t *testing.T) {
	g := newGate(t, WithBreaker(openBreaker(t, time.Minute)), WithProblemJSON())
	inner := newGate(t, WithBreaker(newBreaker(t)), WithProblemJSON())
	for name, h := range map[string]http.Handler{
		"of the gate": g.Wrap(writing(200)),
		"of a handler": inner.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5") // of the answer that is not given
			Refuse(around{w}, r, breaker.ErrOpen)
		})),
	} {
		w := serve(h, incoming(t.Context()))
		assert.Equal(t, "application/problem+json", w.Header().Get("Content-Type"), name)
		assert.NotContains(t, w.Header(), "Content-Length", name)
		var problem map[string]any
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &problem), name)
		want := map[string]any{"type": "about:blank", "title": "Service Unavailable", "status": 502.}
		if name == "of the gate" {
			want["status"] = 503.
		} else {
			want["title"] = "Bad Gateway" // breaker.ErrOpen alone is no Rejection
		}
		assert.Equal(t, want, problem, name)
	}
}

// Something outside may compress what is written here, and has said so in the header:
// without that nobody could read it.
func TestWithProblemJSON_IsEncodedByWhoeverStandsOutside(t *testing.T) {
	for _, opts := range [][]Option{nil, {WithProblemJSON()}} {
		refusing := newGate(t, append(opts, WithBreaker(openBreaker(t, time.Minute)))...).Wrap(writing(200))
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			compressed := gzip.NewWriter(w)
			defer compressed.Close()
			refusing.ServeHTTP(compressing{w, compressed}, r)
		}))
		defer srv.Close()
		resp, err := http.Get(srv.URL) // which takes gzip, and unpacks it
		require.NoError(t, err)
		assert.Contains(t, readAll(t, resp), "Service Unavailable")
	}
}

type compressing struct {
	http.ResponseWriter
	to io.Writer
}

func (w compressing) Write(p []byte) (int, error) { return w.to.Write(p) }

func TestWithRefusal_WritesItsOwnWords(t *testing.T) {
	var got error
	g := newGate(t, WithBreaker(openBreaker(t, time.Minute)), WithRefusal(func(w http.ResponseWriter, _ *http.Request, err error) {
		got = err
		w.Header().Set("Grpc-Status", "14")
		w.WriteHeader(200)
	}))
	w := serve(g.Wrap(writing(200)), incoming(t.Context()))
	require.ErrorIs(t, got, breaker.ErrOpen)
	assert.Equal(t, 200, w.Code)
	assert.Equal(t, "60", w.Header().Get("Retry-After"))
	assert.Equal(t, "no-store", w.Header().Get("Cache-Control"))

	got = nil
	assert.Equal(t, 499, serve(g.Wrap(writing(200)), incoming(gone(t))).Code)
	assert.NoError(t, got, "nobody is there to be answered")
}

// A client that asks before it uploads need not upload to hear no.
func TestS14_RefusalDoesNotReadTheBody(t *testing.T) {
	srv := httptest.NewServer(newGate(t, WithBreaker(openBreaker(t, time.Minute))).Wrap(writing(200)))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	assert.Equal(t, 503, resp.StatusCode)
}

// What Refuse answers is what StatusOf says, unless something has been answered.
func TestRefuse_AnswersOnceAndByTheError(t *testing.T) {
	b := neverTrips(t)
	refuse := func(ctx context.Context, err error, begin bool) *httptest.ResponseRecorder {
		return serve(newGate(t, WithBreaker(b)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if begin {
				fmt.Fprint(w, "begun")
			}
			Refuse(w, r.WithContext(ctx), err)
		})), incoming(t.Context()))
	}
	for name, c := range map[string]struct {
		err  error
		code int
		want outcomes
	}{
		"a refusal":    {openBreaker(t, time.Minute).Peek(), 503, outcomes{ignored: 1}},
		"nothing":      {nil, 503, outcomes{ignored: 1}},
		"a time limit": {sluice.ErrTimeout, 504, outcomes{failure: 1}},
		"an error":     {errors.New("broken"), 502, outcomes{failure: 1}},
	} {
		before := outcomesOf(b)
		w := refuse(t.Context(), c.err, false)
		assert.Equal(t, c.code, w.Code, name)
		assert.Equal(t, http.StatusText(c.code)+"\n", w.Body.String(), name)
		settled(t, b, before, c.want)

		w = refuse(t.Context(), c.err, true)
		assert.Equal(t, 200, w.Code, name)
		assert.Equal(t, "begun", w.Body.String(), name)
	}
	w := refuse(gone(t), sluice.ErrRejected, false)
	assert.Equal(t, 499, w.Code)
	assert.Empty(t, w.Body.String())
}

// Each request that is refused is a line for those who debug, and none for others.
func TestGate_LogsRefusalsAtDebug(t *testing.T) {
	var lines strings.Builder
	h := newGate(t, WithName("front"), WithBreaker(openBreaker(t, time.Minute)),
		WithLogger(slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug})))).Wrap(writing(200))
	r := httptest.NewRequest("BREW", "/path?token=secret", nil)
	serve(h, r)
	line := lines.String()
	assert.Contains(t, line, `level=DEBUG msg="request refused" resource=front status=503 method=_OTHER`)
	assert.Contains(t, line, `upstream`)
	assert.NotContains(t, line, "secret")

	lines.Reset()
	serve(h, incoming(gone(t)))
	assert.Contains(t, lines.String(), `level=DEBUG msg="client has left" resource=front status=499 method=GET`)

	lines.Reset()
	serve(newGate(t, WithBreaker(openBreaker(t, time.Minute)), WithLogger(slog.New(slog.NewTextHandler(&lines, nil)))).Wrap(writing(200)), r)
	assert.Empty(t, lines.String())
}

// Breakers inside breakers: what the inner one refuses is no failure for the outer one,
// and nobody asks it again. https://github.com/resilience4j/resilience4j/issues/1657,
// .../issues/515, .../issues/920
func TestResilience4j1657_InnerRefusalsFeedNoOuterBreaker(t *testing.T) {
	open := openBreaker(t, time.Minute)
	upstream, err := url.Parse("http://upstream.test")
	require.NoError(t, err)
	full := newGate(t, WithMaxInFlight(1))
	require.True(t, full.slots.take())
	for name, inner := range map[string]http.Handler{
		"another gate": newGate(t, WithBreaker(open)).Wrap(writing(200)),
		"a full house": full.Wrap(writing(200)),
		"a handler": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := open.Do(r.Context(), func(context.Context) error { return nil }); err != nil {
				Refuse(w, r, err)
			}
		}),
		"a proxy": &httputil.ReverseProxy{
			Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
			Transport:    newTransport(t, answering(200, ""), WithBreaker(open)),
			ErrorHandler: ProxyErrorHandler(nil),
		},
	} {
		outer := newBreaker(t, breaker.WithConsecutiveFailures(1))
		h := newGate(t, WithBreaker(outer)).Wrap(inner)
		for range 10 {
			w := serve(h, incoming(t.Context()))
			assert.Equal(t, 503, w.Code, name)
			assert.NotEmpty(t, w.Header().Get("Retry-After"), name)
		}
		assert.Equal(t, breaker.Closed, outer.State(), name)
		assert.Equal(t, outcomes{ignored: 10}, outcomesOf(outer), name)
	}
}

// The other errors of a proxy do count.
func TestResilience4j1657_FailuresBehindAProxyDoCount(t *testing.T) {
	upstream, err := url.Parse("http://upstream.test")
	require.NoError(t, err)
	for name, base := range map[string]baseFunc{
		"error":      failing(io.ErrUnexpectedEOF),
		"time limit": failing(sluice.ErrTimeout),
		"status":     answering(500, ""),
	} {
		outer := neverTrips(t)
		serve(newGate(t, WithBreaker(outer)).Wrap(&httputil.ReverseProxy{
			Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
			Transport:    newTransport(t, base),
			ErrorHandler: ProxyErrorHandler(nil),
		}), incoming(t.Context()))
		assert.Equal(t, outcomes{failure: 1}, outcomesOf(outer), name)
	}
}
