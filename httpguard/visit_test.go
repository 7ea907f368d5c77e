package httpguard

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
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

// The server removes the files of the request that it made. A middleware that hands on
// a copy leaves them on the disk: https://github.com/golang/go/issues/58809
func TestS8_MultipartFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	files := func() int {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		return len(entries)
	}
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	part, err := parts.CreateFormFile("file", "name")
	require.NoError(t, err)
	_, err = part.Write(make([]byte, 10_000))
	require.NoError(t, err)
	require.NoError(t, parts.Close())

	for name, opts := range map[string][]Option{
		"breaker":      {WithBreaker(newBreaker(t))},
		"deadline":     {WithDeadline(time.Hour)},
		"probe":        {WithBreaker(halfOpen(t))},
		"two in a row": {WithDeadline(time.Hour)},
	} {
		during := make(chan int, 1)
		var h http.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			assert.NoError(t, r.ParseMultipartForm(1))
			during <- files()
		})
		h = newGate(t, opts...).Wrap(h)
		if name == "two in a row" {
			h = newGate(t, opts...).Wrap(h)
		}
		overBoth(t, h.ServeHTTP, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
			resp, err := srv.Client().Post(srv.URL, parts.FormDataContentType(), bytes.NewReader(form.Bytes()))
			require.NoError(t, err)
			readAll(t, resp)
			assert.Equal(t, 1, <-during, name)
			assert.Eventually(t, func() bool { return files() == 0 }, time.Minute, time.Millisecond, name)
		})
	}
}

// halfOpen is a breaker whose next call is a probe.
func halfOpen(t testing.TB) *breaker.Breaker {
	t.Helper()
	b := openBreaker(t, time.Nanosecond)
	require.Eventually(t, func() bool { return b.State() == breaker.HalfOpen }, time.Minute, time.Nanosecond)
	return b
}

// Loggers stand outside and want the pattern that the mux has found.
func TestS8_PatternIsVisibleOutside(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", writing(200))
	mux.HandleFunc("GET /panic/{id}", func(http.ResponseWriter, *http.Request) { panic("handler") })
	for name, opts := range map[string][]Option{
		"breaker":  {WithBreakers(newGroup(t), ByRoute(mux))},
		"deadline": {WithDeadline(time.Hour)},
	} {
		r := httptest.NewRequest("GET", "/users/7", nil)
		serve(newGate(t, opts...).Wrap(mux), r)
		assert.Equal(t, "GET /users/{id}", r.Pattern, name)

		r = httptest.NewRequest("GET", "/panic/7", nil)
		assert.Equal(t, "handler", apart(func() { serve(newGate(t, opts...).Wrap(mux), r) }), name)
		assert.Equal(t, "GET /panic/{id}", r.Pattern, name)
	}
}

// A handler that does not return is a failure, unless its client has left; the end goes
// on to the server unchanged. Middleware that does its accounts after the handler, and
// not in a defer, has none then: https://github.com/grafana/grafana/issues/131859
func TestGrafana131859_PanicAndGoexitGiveBackWhatTheyTook(t *testing.T) {
	broken := errors.New("a very own value")
	for name, c := range map[string]struct {
		end  func()
		want any
	}{
		"panic":           {func() { panic(broken) }, broken},
		"ErrAbortHandler": {func() { panic(http.ErrAbortHandler) }, http.ErrAbortHandler},
		"Goexit":          {runtime.Goexit, nil},
	} {
		b := neverTrips(t)
		for kind, opts := range map[string][]Option{
			"plain":    {WithMaxInFlight(10), WithBreaker(b)},
			"deadline": {WithMaxInFlight(10), WithBreaker(b), WithDeadline(time.Hour)},
			"bound":    {WithMaxInFlight(10)},
		} {
			g := newGate(t, opts...)
			h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { c.end() }))
			before := outcomesOf(b)
			for range 1000 {
				assert.Equal(t, c.want, apart(func() { serve(h, incoming(t.Context())) }))
			}
			assert.Zero(t, g.Snapshot().InFlight.Now, "%s %s", name, kind)
			assert.Zero(t, g.Snapshot().InFlight.Refused, "%s %s", name, kind)
			if kind != "bound" {
				assert.Equal(t, outcomes{failure: before.failure + 1000}, outcomesOf(b), "%s %s", name, kind)
			}
		}

		left := neverTrips(t)
		g := newGate(t, WithBreaker(left), WithMaxInFlight(1))
		apart(func() {
			ctx, cancel := context.WithCancel(t.Context())
			serve(g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				cancel()
				c.end()
			})), incoming(ctx))
		})
		assert.Equal(t, outcomes{ignored: 1}, outcomesOf(left), name)
		assert.EqualValues(t, 1, g.Snapshot().Left, name)
		assert.Zero(t, g.Snapshot().InFlight.Now, name)
	}
}

// In failsafe-go a panic in a probe leaks its permit, and the breaker never closes.
func TestS9_PanickingProbeDoesNotWedge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBreaker(t, time.Second)
		ends := []func(){func() { panic("probe") }, runtime.Goexit, func() {}}
		h := newGate(t, WithBreaker(b)).Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			end := ends[0]
			ends = ends[1:]
			end()
		}))
		for _, want := range []breaker.State{breaker.Open, breaker.Open, breaker.Closed} {
			time.Sleep(time.Until(b.Snapshot().RetryAt))
			require.Equal(t, breaker.HalfOpen, b.State())
			apart(func() { serve(h, incoming(t.Context())) })
			require.Equal(t, want, b.State())
		}
	})
}

// What stands around a Gate is foreign too: a writer that panics when it is asked what
// it can do, and a logger that does when it is told that a client has left.
func TestS9_ForeignPanicsDoNotWedgeAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			w    http.ResponseWriter
			want outcomes
		}{
			"writer": {brittle{httptest.NewRecorder()}, outcomes{failure: 1}},
			"logger": {httptest.NewRecorder(), outcomes{ignored: 1}},
		} {
			b := openBreaker(t, time.Second)
			g := newGate(t, WithBreaker(b), WithMaxInFlight(1), WithLogger(slog.New(brokenHandler{})))
			time.Sleep(time.Second)
			ctx, leave := context.WithCancel(t.Context())
			h := g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				leave()
				w.WriteHeader(500)
			}))
			assert.Equal(t, "hook", apart(func() { h.ServeHTTP(c.w, incoming(ctx)) }), name)
			leave()
			assert.Equal(t, c.want, outcomesOf(b), name)
			assert.Zero(t, g.Snapshot().InFlight.Now, name)
		}
	})
}

type brittle struct{ *httptest.ResponseRecorder }

func (brittle) Unwrap() http.ResponseWriter { panic("hook") }

type brokenHandler struct{ slog.Handler }

func (brokenHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (brokenHandler) Handle(context.Context, slog.Record) error { panic("hook") }

// Clients that leave are no failures of the route, at whatever moment, and nobody is
// answered: https://github.com/traefik/traefik/issues/13879, .../issues/2932,
// https://github.com/golang/go/issues/20071, https://github.com/vulcand/oxy/issues/112
func TestTraefik13879_ClientsThatLeave(t *testing.T) {
	arrived, wrote := make(chan struct{}), make(chan int, 1)
	handlers := http.NewServeMux()
	handlers.HandleFunc("/before-headers", func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
		w.WriteHeader(500) // as they do: "context canceled"
	})
	handlers.HandleFunc("/mid-body", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "begin")
		_ = http.NewResponseController(w).Flush()
		arrived <- struct{}{}
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // as httputil.ReverseProxy does
	})
	handlers.HandleFunc("/mid-upload", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 10))
		arrived <- struct{}{}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(500)
		}
	})
	b := newBreaker(t)
	g := newGate(t, WithBreaker(b), WithMaxInFlight(1000))
	h := g.Wrap(handlers)
	handler := func(w http.ResponseWriter, r *http.Request) {
		defer func() { wrote <- 1 }()
		h.ServeHTTP(w, r)
	}
	const each = 30
	overBoth(t, handler, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		for _, path := range []string{"/before-headers", "/mid-body", "/mid-upload"} {
			before, left := outcomesOf(b), g.Snapshot().Left
			for range each {
				ctx, cancel := context.WithCancel(t.Context())
				req := getFrom(t, ctx, srv.URL+path)
				body, client := io.Pipe()
				if path == "/mid-upload" {
					req.Method, req.Body, req.ContentLength = "POST", body, 1<<20
					go func() { _, _ = client.Write(make([]byte, 1000)) }()
				}
				go func() {
					<-arrived
					cancel()
					_ = client.CloseWithError(context.Canceled) // net/http waits for who reads it
				}()
				resp, err := base.RoundTrip(req)
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
				}
				require.Error(t, err)
				<-wrote
			}
			assert.Equal(t, outcomes{ignored: before.ignored + each}, outcomesOf(b), path)
			assert.Equal(t, left+each, g.Snapshot().Left, path)
		}
		assert.Equal(t, breaker.Closed, b.State())
		assert.Zero(t, g.Snapshot().InFlight.Now)
	})
}

// One that has left before its turn costs nothing, and its answer is a status for logs.
func TestTraefik13879_ClientThatLeftInTheQueue(t *testing.T) {
	b := neverTrips(t)
	g := newGate(t, WithBreaker(b), WithMaxInFlight(1))
	w := serve(g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("called") })), incoming(gone(t)))
	assert.Equal(t, StatusClientClosedRequest, w.Code)
	assert.Empty(t, w.Body.String())
	assert.Equal(t, outcomes{}, outcomesOf(b))
	assert.EqualValues(t, 1, g.Snapshot().Left)
	assert.Zero(t, g.Snapshot().InFlight.Peak)
}

// A success is one, although its client does not wait for it.
func TestS10_SuccessIsOneForWhomeverItWas(t *testing.T) {
	b := neverTrips(t)
	g := newGate(t, WithBreaker(b))
	ctx, cancel := context.WithCancel(t.Context())
	serve(g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(200)
	})), incoming(ctx))
	assert.Equal(t, outcomes{success: 1}, outcomesOf(b))
	assert.Zero(t, g.Snapshot().Left)
}

// Handlers know best.
func TestS11_HandlerSaysHowItWent(t *testing.T) {
	broken := errors.New("database is down")
	for name, c := range map[string]struct {
		handler func(w http.ResponseWriter, r *http.Request)
		want    outcomes
	}{
		"Fail, then 200":        {func(w http.ResponseWriter, _ *http.Request) { Fail(w, broken); w.WriteHeader(200) }, outcomes{failure: 1}},
		"200, then Fail":        {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); Fail(w, broken) }, outcomes{failure: 1}},
		"Fail with nothing":     {func(w http.ResponseWriter, _ *http.Request) { Fail(w, nil); w.WriteHeader(500) }, outcomes{failure: 1}},
		"Fail with nothing, ok": {func(w http.ResponseWriter, _ *http.Request) { Fail(w, nil) }, outcomes{success: 1}},
		"Fail with a refusal":   {func(w http.ResponseWriter, _ *http.Request) { Fail(w, sluice.ErrRejected); w.WriteHeader(503) }, outcomes{ignored: 1}},
		"Fail, marked":          {func(w http.ResponseWriter, _ *http.Request) { Fail(w, sluice.Mark(broken, sluice.Throttled)) }, outcomes{throttled: 1}},
		"Ignore, 500":           {func(w http.ResponseWriter, _ *http.Request) { Ignore(w); w.WriteHeader(500) }, outcomes{ignored: 1}},
		"Ignore, panic":         {func(w http.ResponseWriter, _ *http.Request) { Ignore(w); panic("x") }, outcomes{ignored: 1}},
		"Fail, then Ignore":     {func(w http.ResponseWriter, _ *http.Request) { Fail(w, broken); Ignore(w) }, outcomes{ignored: 1}},
		"through others":        {func(w http.ResponseWriter, _ *http.Request) { Fail(around{around{w}}, broken) }, outcomes{failure: 1}},
		"hidden":                {func(w http.ResponseWriter, _ *http.Request) { Fail(struct{ http.ResponseWriter }{w}, broken) }, outcomes{success: 1}},
	} {
		inner, outer := neverTrips(t), neverTrips(t)
		guarded := newGate(t, WithBreaker(inner)).Wrap(http.HandlerFunc(c.handler))
		h := newGate(t, WithBreaker(outer)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			guarded.ServeHTTP(around{w}, r)
		}))
		apart(func() { serve(h, incoming(t.Context())) })
		assert.Equal(t, c.want, outcomesOf(inner), name)
		assert.Equal(t, c.want, outcomesOf(outer), name)
	}
	Fail(httptest.NewRecorder(), broken) // nobody wants to know
	Ignore(httptest.NewRecorder())
}

// A failure that the handler tells of is the client's if the client has left.
func TestS11_FailOfOneThatHasLeftIsNone(t *testing.T) {
	b := neverTrips(t)
	ctx, cancel := context.WithCancel(t.Context())
	serve(newGate(t, WithBreaker(b)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		Fail(w, errors.New("query: context canceled"))
	})), incoming(ctx))
	assert.Equal(t, outcomes{ignored: 1}, outcomesOf(b))
}

func TestWithStatusClassifier(t *testing.T) {
	b := neverTrips(t)
	g := newGate(t, WithBreaker(b), WithStatusClassifier(func(r *http.Request, status int) sluice.Outcome {
		switch {
		case r.URL.Path == "/panic":
			panic("classifier")
		case status == 404:
			return sluice.Failure
		case status == 503:
			return sluice.Throttled
		case status == 204:
			return sluice.Ignored
		case status == 501:
			return sluice.Success
		}
		return 0
	}))
	for status, want := range map[int]outcomes{
		200: {success: 1}, 204: {ignored: 1}, 404: {failure: 1}, 500: {failure: 1}, 503: {throttled: 1}, 501: {success: 1}, 429: {ignored: 1},
	} {
		before := outcomesOf(b)
		serve(g.Wrap(writing(status)), incoming(t.Context()))
		settled(t, b, before, want)
	}
	before := outcomesOf(b)
	assert.Equal(t, "classifier", apart(func() { serve(g.Wrap(writing(200)), httptest.NewRequest("GET", "/panic", nil)) }))
	settled(t, b, before, outcomes{failure: 1})
}

// What is told of the end by status: as for a Transport, but that 429 is about one
// client and says nothing about the route.
func TestGate_OutcomeByStatus(t *testing.T) {
	for status := 200; status <= 599; status++ {
		b := neverTrips(t)
		serve(newGate(t, WithBreaker(b)).Wrap(writing(status)), incoming(t.Context()))
		want := outcomes{success: 1}
		switch {
		case status == 429:
			want = outcomes{ignored: 1}
		case status >= 500 && status != 501 && status != 505 && status != 511:
			want = outcomes{failure: 1}
		}
		assert.Equal(t, want, outcomesOf(b), status)
	}
}

// http.TimeoutHandler buffers, hides Flush and answers clients that have left. A
// deadline that the handler heeds does none of it.
func TestS12_Deadline(t *testing.T) {
	wait := func(r *http.Request) error {
		<-r.Context().Done()
		return context.Cause(r.Context())
	}
	for name, c := range map[string]struct {
		handler func(w http.ResponseWriter, r *http.Request)
		code    int
		body    string
		want    outcomes
	}{
		"in time": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") }, 200, "done", outcomes{success: 1}},
		"nothing written": {func(_ http.ResponseWriter, r *http.Request) {
			assert.ErrorIs(t, wait(r), sluice.ErrTimeout)
		}, 503, "Service Unavailable\n", outcomes{failure: 1}},
		"begun before": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "begun")
			_ = wait(r)
		}, 200, "begun", outcomes{success: 1}},
		"written after": {func(w http.ResponseWriter, r *http.Request) {
			_ = wait(r)
			http.Error(w, "own words", http.StatusGatewayTimeout)
		}, 504, "own words\n", outcomes{failure: 1}},
		"finished after": {func(w http.ResponseWriter, r *http.Request) {
			_ = wait(r)
			fmt.Fprint(w, "late")
		}, 200, "late", outcomes{success: 1}},
		"ignored": {func(w http.ResponseWriter, r *http.Request) {
			_ = wait(r)
			Ignore(w)
		}, 503, "Service Unavailable\n", outcomes{ignored: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := neverTrips(t)
				start := time.Now()
				w := serve(newGate(t, WithBreaker(b), WithDeadline(time.Second)).Wrap(http.HandlerFunc(c.handler)), incoming(t.Context()))
				assert.Equal(t, c.code, w.Code)
				assert.Equal(t, c.body, w.Body.String())
				assert.Equal(t, c.want, outcomesOf(b))
				assert.LessOrEqual(t, time.Since(start), time.Second)
			})
		})
	}
}

// Whoever was first decides: the deadline, or the client.
func TestS12_DeadlineOfOneThatHasLeft(t *testing.T) {
	answers := func(w http.ResponseWriter) { w.WriteHeader(500) }
	for name, c := range map[string]struct {
		leaves time.Duration
		end    func(http.ResponseWriter)
		want   outcomes
		code   int
		left   uint64
	}{
		"before, an error":   {500 * time.Millisecond, func(w http.ResponseWriter) { Fail(w, context.Canceled) }, outcomes{ignored: 1}, 200, 1},
		"before, an answer":  {500 * time.Millisecond, answers, outcomes{ignored: 1}, 500, 1},
		"after, nothing":     {1500 * time.Millisecond, func(http.ResponseWriter) {}, outcomes{failure: 1}, 499, 0},
		"after, an answer":   {1500 * time.Millisecond, answers, outcomes{failure: 1}, 500, 0},
		"not at all, answer": {time.Hour, answers, outcomes{failure: 1}, 500, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := neverTrips(t)
				g := newGate(t, WithBreaker(b), WithDeadline(time.Second))
				ctx, cancel := context.WithCancel(t.Context())
				defer time.AfterFunc(c.leaves, cancel).Stop()
				w := serve(g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					<-r.Context().Done()
					time.Sleep(time.Second)
					c.end(w)
				})), incoming(ctx))
				assert.Equal(t, c.want, outcomesOf(b))
				assert.Equal(t, c.left, g.Snapshot().Left)
				assert.Equal(t, c.code, w.Code)
				assert.Empty(t, w.Body.String())
			})
		})
	}
}

// go-zero's timeout handler broke Flush and streams three times over:
// https://github.com/zeromicro/go-zero/issues/3178, .../issues/3467, .../issues/3347,
// https://github.com/golang/go/issues/74021
func TestGoZero3178_StreamsBesideADeadline(t *testing.T) {
	mux := http.NewServeMux()
	stream := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			time.Sleep(100 * time.Millisecond)
			fmt.Fprintf(w, "data: %d\n\n", i)
			assert.NoError(t, http.NewResponseController(w).Flush())
		}
	}
	b := neverTrips(t)
	mux.Handle("/events", newGate(t, WithBreaker(b)).Wrap(http.HandlerFunc(stream)))
	mux.Handle("/heeded", newGate(t, WithBreaker(b), WithDeadline(50*time.Millisecond)).Wrap(http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })))
	mux.Handle("/events-under-a-deadline", newGate(t, WithBreaker(b), WithDeadline(50*time.Millisecond)).Wrap(http.HandlerFunc(stream)))
	overBothInABubble(t, mux.ServeHTTP, func(t *testing.T, base *http.Transport) {
		resp, err := base.RoundTrip(getFrom(t, t.Context(), "http://server.test/events"))
		require.NoError(t, err)
		start := time.Now()
		events := bufio.NewReader(resp.Body)
		for i := range 3 {
			line, err := events.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprintf("data: %d\n", i), line)
			_, err = events.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, time.Duration(i)*100*time.Millisecond, time.Since(start), "each event comes at once")
		}
		readAll(t, resp)

		resp, err = base.RoundTrip(getFrom(t, t.Context(), "http://server.test/heeded"))
		require.NoError(t, err)
		assert.Equal(t, 503, resp.StatusCode)
		readAll(t, resp)

		resp, err = base.RoundTrip(getFrom(t, t.Context(), "http://server.test/events-under-a-deadline"))
		require.NoError(t, err)
		assert.Equal(t, 200, resp.StatusCode)
		assert.Equal(t, "data: 0\n\ndata: 1\n\ndata: 2\n\n", readAll(t, resp), "the handler did not heed it, and nothing is cut or added")
	})
}

// A goroutine that the handler has left behind flushes: no worse than without us. It is
// a fault of the handler, which the server need not forgive, but nothing of the Gate
// may panic or race.
func TestGoZero3467_LateFlushDoesNotPanic(t *testing.T) {
	base := httptest.NewRecorder()
	late := make(chan struct{})
	done := make(chan struct{})
	g := newGate(t, WithBreaker(neverTrips(t)), WithDeadline(time.Hour))
	g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		go func() {
			defer close(done)
			<-late
			w.(http.Flusher).Flush()
			Fail(w, errors.New("too late"))
		}()
	})).ServeHTTP(base, incoming(t.Context()))
	close(late)
	<-done
	assert.True(t, base.Flushed)
}

// A connection that the handler has taken over is no request any more: a websocket may
// live for days.
func TestS13_HijackEndsTheRequest(t *testing.T) {
	b := newBreaker(t, breaker.WithSlowCallRatio(time.Nanosecond, 1), breaker.WithMinRequests(1000))
	var drain Drain
	for name, opts := range map[string][]Option{
		"breaker": {WithMaxInFlight(1), WithDrain(&drain), WithBreaker(b)},
		"bound":   {WithMaxInFlight(1), WithDrain(&drain)},
	} {
		t.Run(name, func(t *testing.T) {
			taken, hold := make(chan struct{}), make(chan struct{})
			g := newGate(t, opts...)
			handler := g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if !assert.NoError(t, err) {
					return
				}
				close(taken)
				<-hold
				_ = conn.Close()
				panic(http.ErrAbortHandler) // is not counted a second time
			}))
			srv := httptest.NewServer(handler)
			defer srv.Close()
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			<-taken
			assert.Zero(t, g.Snapshot().InFlight.Now)
			assert.Zero(t, drain.InFlight())
			if name == "breaker" {
				assert.Equal(t, outcomes{success: 1}, outcomesOf(b))
			}
			close(hold)
			_, _ = io.ReadAll(conn)
		})
	}
	assert.Equal(t, outcomes{success: 1}, outcomesOf(b))
}

// A stream of events ends for the breaker when it begins: a slow rule would see hours,
// and a probe would be lost.
func TestS13_EventStreamEndsAtItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBreaker(t, time.Second, breaker.WithSlowCallRatio(100*time.Millisecond, 0.5), breaker.WithProbeLease(time.Minute))
		time.Sleep(time.Second)
		g := newGate(t, WithBreaker(b), WithMaxInFlight(10))
		h := g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "Text/Event-Stream; charset=utf-8")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Hour)
		}))
		go serve(h, incoming(t.Context()))
		synctest.Wait()
		assert.Equal(t, breaker.Closed, b.State(), "the probe went well")
		go serve(h, incoming(t.Context()))
		synctest.Wait()
		assert.Equal(t, outcomes{success: 2}, outcomesOf(b))
		assert.Equal(t, 2, g.Snapshot().InFlight.Now, "but the slots are taken")
		time.Sleep(2 * time.Hour)
		assert.Zero(t, g.Snapshot().InFlight.Now)
		assert.Equal(t, outcomes{success: 2}, outcomesOf(b))
		assert.Zero(t, b.Snapshot().Totals.Slow)
	})
}

// Of other responses that are flushed, the time until then counts; how they end still
// matters.
func TestS13_FlushStopsTheClockAndNotTheJudgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.WithSlowCallRatio(100*time.Millisecond, 0.5), breaker.WithErrorCount(1000))
		h := func(ttfb time.Duration, ends func()) http.Handler {
			return newGate(t, WithBreaker(b)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(ttfb)
				_ = http.NewResponseController(w).Flush()
				time.Sleep(time.Second)
				_ = http.NewResponseController(w).Flush()
				ends()
			}))
		}
		serve(h(0, func() {}), incoming(t.Context()))
		assert.Equal(t, outcomes{success: 1}, outcomesOf(b))
		assert.Zero(t, b.Snapshot().Totals.Slow)
		serve(h(200*time.Millisecond, func() {}), incoming(t.Context()))
		assert.EqualValues(t, 1, b.Snapshot().Totals.Slow)
		apart(func() { serve(h(0, func() { panic(http.ErrAbortHandler) }), incoming(t.Context())) })
		assert.Equal(t, outcomes{success: 2, failure: 1}, outcomesOf(b))
	})
}

// A probe is resolved when its client has got something, as in a Transport.
func TestS13_FlushResolvesAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBreaker(t, time.Second)
		time.Sleep(time.Second)
		go serve(newGate(t, WithBreaker(b)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Hour)
		})), incoming(t.Context()))
		synctest.Wait()
		assert.Equal(t, breaker.Closed, b.State())
		time.Sleep(2 * time.Hour)
		assert.Equal(t, outcomes{success: 1}, outcomesOf(b))
	})
}

func TestGate_FailingStatusInAProbeOpensAgain(t *testing.T) {
	b := halfOpen(t)
	serve(newGate(t, WithBreaker(b)).Wrap(writing(500)), incoming(t.Context()))
	assert.Equal(t, breaker.Open, b.State())
	assert.Contains(t, strings.ToLower(b.Snapshot().Reason), "probe")
}
