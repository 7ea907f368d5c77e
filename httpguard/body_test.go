package httpguard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// A context that is cancelled when RoundTrip returns breaks the body: small ones hide
// it, because they are in a buffer already, and HTTP/2 shows it.
// https://github.com/failsafe-go/failsafe-go/issues/123
func TestC07_ContextLivesAsLongAsTheBody(t *testing.T) {
	broken := errors.New("connection reset")
	for name, c := range map[string]struct {
		rest io.Reader
		end  func(body io.ReadCloser) error
		want error
	}{
		"read to the end": {strings.NewReader("rest"), func(b io.ReadCloser) error { _, err := io.Copy(io.Discard, b); return err }, nil},
		"closed":          {strings.NewReader("rest"), io.ReadCloser.Close, nil},
		"read error":      {errReader{broken}, func(b io.ReadCloser) error { _, err := io.Copy(io.Discard, b); return err }, broken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent context.Context
				base := baseFunc(func(req *http.Request) (*http.Response, error) {
					sent = req.Context()
					time.Sleep(10*time.Second - 1) // one nanosecond to spare
					resp := response(req, 200, "")
					resp.Body, resp.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("first"), c.rest)), -1
					return resp, nil
				})
				tr := newTransport(t, base, WithAttemptTimeout(10*time.Second))
				resp, err := tr.RoundTrip(get(t.Context()))
				require.NoError(t, err)

				time.Sleep(time.Hour)
				require.NoError(t, sent.Err(), "the timeout ended at the headers")
				first := make([]byte, 5)
				_, err = io.ReadFull(resp.Body, first)
				require.NoError(t, err)
				assert.Equal(t, "first", string(first))
				require.NoError(t, sent.Err(), "while there is more to read")

				assert.Equal(t, c.want, c.end(resp.Body))
				assert.ErrorIs(t, sent.Err(), context.Canceled, "and then it is let go")
				assert.NotErrorIs(t, context.Cause(sent), sluice.ErrTimeout)
				require.NoError(t, resp.Body.Close())
				require.NoError(t, resp.Body.Close(), "twice does no harm")
			})
		})
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// Without a body there is nothing to wait for, and nothing to wrap.
func TestC07_WithoutABodyTheContextEndsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		status int
		body   io.ReadCloser
	}{
		"no body":  {http.MethodGet, 200, http.NoBody},
		"nil body": {http.MethodGet, 200, nil},
		"204":      {http.MethodGet, 204, &watchedBody{Reader: strings.NewReader("")}},
		"304":      {http.MethodGet, 304, &watchedBody{Reader: strings.NewReader("")}},
		"HEAD":     {http.MethodHead, 200, &watchedBody{Reader: strings.NewReader("")}},
	} {
		var sent context.Context
		base := baseFunc(func(req *http.Request) (*http.Response, error) {
			sent = req.Context()
			return &http.Response{StatusCode: c.status, Body: c.body}, nil
		})
		req := get(t.Context())
		req.Method = c.method
		resp, err := newTransport(t, base, WithAttemptTimeout(time.Hour)).RoundTrip(req)
		require.NoError(t, err, name)
		assert.ErrorIs(t, sent.Err(), context.Canceled, name)
		assert.NotNil(t, resp.Body, name)
		if c.body != nil {
			assert.Equal(t, c.body, resp.Body, name+": not wrapped")
		}
	}
}

// The same with real HTTP: the body comes drop by drop, long after the limit.
func TestC07_SlowBodyOutlivesTheAttemptTimeout(t *testing.T) {
	overBothInABubble(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 60 {
			_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Minute)
		}
	}, func(t *testing.T, base *http.Transport) {
		start := time.Now()
		client := &http.Client{Transport: newTransport(t, base, WithAttemptTimeout(time.Second))}
		resp, err := client.Get("http://upstream.test/")
		require.NoError(t, err)
		assert.Len(t, readAll(t, resp), 600_000)
		assert.GreaterOrEqual(t, time.Since(start), 59*time.Minute)
	})
}

// And over real connections, in real time.
func TestC07_LargeBodyOverLoopback(t *testing.T) {
	const limit = time.Second
	late := make(chan struct{})
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-late:
		case <-r.Context().Done():
		}
		for range 64 {
			_, _ = io.WriteString(w, strings.Repeat("x", 16<<10))
			_ = http.NewResponseController(w).Flush()
		}
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		client := &http.Client{Transport: newTransport(t, base, WithAttemptTimeout(limit))}
		resp, err := client.Get(srv.URL)
		for tries := 0; errors.Is(err, sluice.ErrTimeout) && tries < 60; tries++ { // the machine stood still
			resp, err = client.Get(srv.URL)
		}
		require.NoError(t, err)
		time.Sleep(limit + 50*time.Millisecond) // a socket cannot be in a bubble
		late <- struct{}{}
		assert.Len(t, readAll(t, resp), 1<<20)
	})
}

// A limit that strikes while the base returns has won: its context is dead, and the
// body with it.
func TestC07_TimeoutAtTheVeryLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			takes time.Duration
			want  error
		}{{time.Second - 1, nil}, {time.Second, sluice.ErrTimeout}, {time.Second + 1, sluice.ErrTimeout}} {
			var given *http.Response
			base := baseFunc(func(req *http.Request) (*http.Response, error) {
				time.Sleep(c.takes) // and does not look at its context
				synctest.Wait()
				given = response(req, 200, "body")
				return given, nil
			})
			resp, err := newTransport(t, base, WithAttemptTimeout(time.Second)).RoundTrip(get(t.Context()))
			if c.want == nil {
				require.NoError(t, err)
				assert.Equal(t, "body", readAll(t, resp))
				continue
			}
			require.ErrorIs(t, err, c.want)
			assert.Nil(t, resp)
			assert.EqualValues(t, 1, given.Body.(*watchedBody).closes.Load())
		}
	})
}

// What users look for in a timeout: our own sentinel, the one of context, and the
// method that url.Error and net.Error have. It must not look like a cancelled call.
func TestAttemptTimeout_ErrorIsATimeoutInEveryWay(t *testing.T) {
	overBoth(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		func(t *testing.T, srv *httptest.Server, base *http.Transport) {
			b := neverTrips(t)
			tr := newTransport(t, base, WithAttemptTimeout(20*time.Millisecond), WithBreaker(b))
			_, err := tr.RoundTrip(getFrom(t, t.Context(), srv.URL))
			assert.EqualError(t, err, "httpguard: no response headers within 20ms")
			_, err = (&http.Client{Transport: tr}).Get(srv.URL)
			require.ErrorIs(t, err, sluice.ErrTimeout)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, context.Canceled)
			var outer *url.Error
			require.ErrorAs(t, err, &outer)
			assert.True(t, outer.Timeout())
			assert.EqualValues(t, 2, b.Snapshot().Totals.Failure)
		})
}

// A verdict at the end of the body would keep the half-open state waiting for as long
// as a stream of events goes on.
func TestC08_VerdictFallsAtTheHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openBreaker(t, time.Second)
		endless := baseFunc(func(req *http.Request) (*http.Response, error) {
			resp := response(req, 200, "")
			resp.Body, resp.ContentLength = io.NopCloser(endlessReader{}), -1
			return resp, nil
		})
		tr := newTransport(t, endless, WithBreaker(b), WithAttemptTimeout(time.Minute))
		time.Sleep(time.Second)
		require.Equal(t, breaker.HalfOpen, b.State())
		resp, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, breaker.Closed, b.State(), "with the body still open")
		require.NoError(t, resp.Body.Close())
	})
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) { return len(p), nil }

// A wrapper that hides Write turns every websocket through a reverse proxy into a 502:
// https://github.com/open-telemetry/opentelemetry-go-contrib/issues/1329
func TestC10_SwitchedProtocolsStayWritable(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(rw, rw) // until the other side closes its direction
		_, _ = rw.WriteString("bye\n")
		_ = rw.Flush()
	}))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	b := newBreaker(t)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: newTransport(t, nil, WithBreaker(b), WithAttemptTimeout(time.Minute), WithTotalTimeout(time.Minute),
			WithBodyIdleTimeout(time.Minute), WithFinishAt(Body), WithFallback(func(*http.Request, error) (*http.Response, error) { return nil, io.EOF })),
	})
	defer proxy.Close()

	conn, err := net.Dial("tcp", proxy.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	assert.EqualValues(t, 1, b.Snapshot().Totals.Success, "settled while the connection is in use")
	for _, line := range []string{"one\n", "two\n"} {
		_, err = io.WriteString(conn, line)
		require.NoError(t, err)
		echoed, err := r.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, line, echoed)
	}
	// The proxy hands the end of one direction on by CloseWrite, and goes on with the
	// other.
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	last, err := r.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "bye\n", last)
}

type pipeBody struct {
	io.Reader
	written    strings.Builder
	halfClosed bool
	closed     bool
}

func (b *pipeBody) Write(p []byte) (int, error) { return b.written.Write(p) }
func (b *pipeBody) CloseWrite() error           { b.halfClosed = true; return nil }
func (b *pipeBody) Close() error                { b.closed = true; return nil }

// The body can do what the base's can, no less and no more.
func TestC10_BodyKeepsWhatItCanDo(t *testing.T) {
	var sent context.Context
	exchange := func(body io.ReadCloser) io.ReadCloser {
		base := baseFunc(func(req *http.Request) (*http.Response, error) {
			sent = req.Context()
			return &http.Response{StatusCode: 101, Body: body}, nil
		})
		resp, err := newTransport(t, base, WithAttemptTimeout(time.Hour)).RoundTrip(get(t.Context()))
		require.NoError(t, err)
		return resp.Body
	}
	full := &pipeBody{Reader: strings.NewReader("in")}
	body := exchange(full)
	_, err := body.(io.Writer).Write([]byte("out"))
	require.NoError(t, err)
	in, err := io.ReadAll(body)
	require.NoError(t, err)
	assert.Equal(t, "in", string(in))
	require.NoError(t, sent.Err(), "the end of one direction is not that of the other")
	require.NoError(t, body.(closeWriter).CloseWrite())
	assert.Equal(t, "out", full.written.String())
	assert.True(t, full.halfClosed)
	require.NoError(t, body.Close())
	assert.True(t, full.closed)
	assert.ErrorIs(t, sent.Err(), context.Canceled)

	body = exchange(struct{ io.ReadWriteCloser }{full})
	assert.Implements(t, (*io.Writer)(nil), body)
	assert.NotImplements(t, (*closeWriter)(nil), body)

	body = exchange(struct{ io.ReadCloser }{full})
	assert.NotImplements(t, (*io.Writer)(nil), body)
}

// A base that caches may hand out files as bodies, which can be written to as well. They
// are watched like all others.
func TestC10_WritableBodiesAreNoConnections(t *testing.T) {
	for _, opt := range []Option{WithName("no limit"), WithTotalTimeout(time.Hour)} {
		b := newBreaker(t)
		var sent context.Context
		base := baseFunc(func(req *http.Request) (*http.Response, error) {
			sent = req.Context()
			resp := response(req, 200, "")
			resp.Body, resp.ContentLength = &pipeBody{Reader: strings.NewReader("cached")}, 6
			return resp, nil
		})
		resp, err := newTransport(t, base, WithBreaker(b), WithFinishAt(Body), opt).RoundTrip(get(t.Context()))
		require.NoError(t, err)
		assert.Zero(t, outcomesOf(b))
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		assert.Equal(t, outcomes{success: 1}, outcomesOf(b))
		if sent != t.Context() {
			assert.Error(t, sent.Err(), "the end of the body is that of the call")
		}
	}
}

// net/http puts the trailers into the Response that it returned; one that is copied
// loses those that were not announced.
func TestC11_UndeclaredTrailersArrive(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "body")
		_ = http.NewResponseController(w).Flush()
		w.Header().Set(http.TrailerPrefix+"X-Sum", "abc")
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		tr := newTransport(t, base, WithBreaker(newBreaker(t)), WithAttemptTimeout(time.Minute), WithFinishAt(Body),
			WithBodyIdleTimeout(time.Minute), WithFallback(func(*http.Request, error) (*http.Response, error) { return nil, io.EOF }))
		resp, err := tr.RoundTrip(getFrom(t, t.Context(), srv.URL))
		require.NoError(t, err)
		assert.Equal(t, "body", readAll(t, resp))
		assert.Equal(t, http.Header{"X-Sum": {"abc"}}, resp.Trailer)
	})
}

// A client of a proxy that goes away in the middle of its upload is no sign of a sick
// upstream, though the call ends with an error and its context may be alive. Whether
// it was the body can only be seen by who hands it on.
func TestUpload_TellsWhoseFaultTheEndWas(t *testing.T) {
	gone := errors.New("client gone")
	read := func(u *upload) { _, _ = io.Copy(io.Discard, u) }
	for name, c := range map[string]struct {
		body   io.Reader
		want   int64
		do     func(*upload)
		broken bool
	}{
		"read well":                    {strings.NewReader("12345"), 5, read, false},
		"of unknown length":            {strings.NewReader("12345"), -1, read, false},
		"of no length":                 {strings.NewReader("12345"), 0, read, false},
		"breaks":                       {io.MultiReader(strings.NewReader("123"), errReader{gone}), 5, read, true},
		"ends too early":               {strings.NewReader("1234"), 5, read, true},
		"goes on too long":             {strings.NewReader("123456"), 5, read, true},
		"not read to its end":          {strings.NewReader("12345"), 5, func(u *upload) { _, _ = u.Read(make([]byte, 2)) }, false},
		"fails after it was closed":    {errReader{gone}, 5, func(u *upload) { _ = u.Close(); read(u) }, false},
		"closed after it had failed":   {errReader{gone}, 5, func(u *upload) { read(u); _ = u.Close() }, true},
		"fails because it is closed":   {&closingReader{}, 5, read, false},
		"read for nothing, never used": {strings.NewReader("12345"), 5, func(*upload) {}, false},
	} {
		u := &upload{ReadCloser: io.NopCloser(c.body), ctx: t.Context(), want: c.want}
		if r, ok := c.body.(*closingReader); ok {
			r.u = u
		}
		c.do(u)
		assert.Equal(t, c.broken, u.broken.Load(), name)
	}
}

// closingReader fails because its upload is closed while it reads.
type closingReader struct{ u *upload }

func (r *closingReader) Read([]byte) (int, error) {
	_ = r.u.Close()
	return 0, io.ErrClosedPipe
}

// A context that ends at the headers must not take the connection with it.
func TestC07_ResponsesWithoutABodyKeepTheirConnection(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.WriteHeader(304)
		}
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		tr := newTransport(t, base, WithAttemptTimeout(time.Minute), WithBreaker(neverTrips(t)), WithFinishAt(Body))
		connections := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if !i.Reused {
				connections++
			}
		}})
		for i := range 60 {
			req := getFrom(t, ctx, srv.URL+[]string{"/", "/204", "/304"}[i%3])
			if i%3 == 0 {
				req.Method = http.MethodHead
			}
			resp, err := tr.RoundTrip(req)
			require.NoError(t, err)
			assert.Empty(t, readAll(t, resp))
		}
		assert.Equal(t, 1, connections)
	})
}
