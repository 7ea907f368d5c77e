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
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// abilitiesOf tells what a handler can find out about its writer, by asking for
// methods and through http.ResponseController.
func abilitiesOf(w http.ResponseWriter) string {
	var can []string
	add := func(name string, ok bool) {
		if ok {
			can = append(can, name)
		}
	}
	_, ok := w.(http.Flusher)
	add("Flush", ok)
	_, ok = w.(interface{ FlushError() error })
	add("FlushError", ok)
	_, ok = w.(http.Hijacker)
	add("Hijack", ok)
	_, ok = w.(http.Pusher)
	add("Push", ok)
	_, ok = w.(io.ReaderFrom)
	add("ReadFrom", ok)
	_, ok = w.(io.StringWriter)
	add("WriteString", ok)
	_, ok = w.(closeNotifier)
	add("CloseNotify", ok)
	c := http.NewResponseController(w)
	add("read deadline", c.SetReadDeadline(time.Now().Add(time.Hour)) == nil)
	add("write deadline", c.SetWriteDeadline(time.Now().Add(time.Hour)) == nil)
	add("full duplex", c.EnableFullDuplex() == nil)
	add("flush by controller", c.Flush() == nil)
	return strings.Join(can, ", ")
}

// A middleware that hides what the writer below can do breaks websockets and streams:
// https://github.com/traefik/traefik/pull/460, https://github.com/slok/go-http-metrics/issues/28
func TestS1_WriterCanDoWhatTheOneBelowCan(t *testing.T) {
	report := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, abilitiesOf(w))
	})
	guarded := newGate(t, WithBreaker(newBreaker(t))).Wrap(report)
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bare" {
			report(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	}
	overBoth(t, handler, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		answer := func(path string) string {
			resp, err := base.RoundTrip(getFrom(t, t.Context(), srv.URL+path))
			require.NoError(t, err)
			return readAll(t, resp)
		}
		bare := answer("/bare")
		assert.Contains(t, bare, "Flush, FlushError")
		assert.Equal(t, bare, answer("/guarded"))
	})
}

// plain is a writer with the three methods that every one has.
type plain struct {
	header http.Header
	status []int
	body   strings.Builder
}

func newPlain() *plain { return &plain{header: http.Header{}} }

func (w *plain) Header() http.Header         { return w.header }
func (w *plain) WriteHeader(status int)      { w.status = append(w.status, status) }
func (w *plain) Write(p []byte) (int, error) { return w.body.Write(p) }

// around has nothing but Unwrap, as the writers of some servers do.
type around struct{ http.ResponseWriter }

func (w around) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Handlers ask before they use a method, so a writer that has one which the server
// cannot fulfil leads them astray.
func TestS3_WriterClaimsNothingThatTheOneBelowLacks(t *testing.T) {
	wrapped := func(base http.ResponseWriter, r *http.Request) http.ResponseWriter {
		w, _ := wrap(base, r)
		return w
	}
	r := incoming(t.Context())
	assert.Equal(t, "WriteString", abilitiesOf(wrapped(newPlain(), r)))
	assert.Equal(t, "WriteString", abilitiesOf(wrapped(around{newPlain()}, r)))
	assert.Equal(t, "Flush, FlushError, WriteString, flush by controller", abilitiesOf(wrapped(httptest.NewRecorder(), r)))
	assert.Equal(t, "Flush, FlushError, WriteString, flush by controller", abilitiesOf(wrapped(around{httptest.NewRecorder()}, r)))

	type all struct {
		*httptest.ResponseRecorder
		http.Hijacker
		http.Pusher
	}
	claims := all{ResponseRecorder: httptest.NewRecorder()}
	assert.Equal(t, "Flush, FlushError, Hijack, ReadFrom, WriteString, CloseNotify, flush by controller", abilitiesOf(wrapped(claims, r)))
	r.ProtoMajor = 2
	assert.Equal(t, "Flush, FlushError, Push, WriteString, CloseNotify, flush by controller", abilitiesOf(wrapped(claims, r)))

	type hijacks struct {
		*plain
		http.Hijacker
	}
	assert.Equal(t, "Hijack, WriteString", abilitiesOf(wrapped(hijacks{plain: newPlain()}, r)))
	assert.Equal(t, "Hijack, WriteString", abilitiesOf(wrapped(around{hijacks{plain: newPlain()}}, r)))
}

// Loggers of the status with no more than the Hijack that websockets need are in many
// programs, and so are frameworks that panic where CloseNotify is missing.
func TestS1_WritersOfOthersKeepHijackAndCloseNotify(t *testing.T) {
	b := neverTrips(t)
	h := newGate(t, WithBreaker(b)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		fmt.Fprint(buffered, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		buffered.Flush()
		line, _ := buffered.ReadString('\n')
		fmt.Fprint(buffered, strings.ToUpper(line))
		buffered.Flush()
	}))
	type status struct {
		http.ResponseWriter
		http.Hijacker
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(status{w, w.(http.Hijacker)}, r)
	}))
	defer srv.Close()
	assert.Equal(t, "HELLO\n", upgrade(t, srv, "/"))
	assert.Equal(t, outcomes{success: 1}, outcomesOf(b))

	came, told := make(chan struct{}), make(chan struct{})
	watching := newGate(t, WithBreaker(b)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gone := w.(closeNotifier).CloseNotify()
		select {
		case <-gone:
			assert.Fail(t, "the client is still there")
		default:
		}
		came <- struct{}{}
		<-gone
		told <- struct{}{}
	}))
	type server struct { // one with no CloseNotify of its own
		http.ResponseWriter
		http.Flusher
		http.Hijacker
	}
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/without" {
			w = server{w, w.(http.Flusher), w.(http.Hijacker)}
		}
		watching.ServeHTTP(w, r)
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		paths := []string{"/", "/without"}
		if srv.EnableHTTP2 {
			paths = paths[:1]
		}
		for _, path := range paths {
			ctx, leave := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, err := base.RoundTrip(getFrom(t, ctx, srv.URL+path))
				assert.ErrorIs(t, err, context.Canceled)
			}()
			<-came
			leave()
			<-told
			<-ended
		}
	})
}

// Some writers offer what they can do through Unwrap only, and some handlers ask by
// assertion only: https://github.com/corazawaf/coraza-caddy/pull/326
func TestCoraza326_HijackWorksByAssertionAndByUnwrap(t *testing.T) {
	takeOver := map[string]func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
		"/assertion": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return w.(http.Hijacker).Hijack()
		},
		"/controller": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
		"/controller-around": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(around{w}).Hijack()
		},
	}
	b := neverTrips(t)
	h := newGate(t, WithBreaker(b)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := takeOver[r.URL.Path](w)
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		fmt.Fprint(buffered, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		buffered.Flush()
		line, _ := buffered.ReadString('\n')
		fmt.Fprint(buffered, strings.ToUpper(line))
		buffered.Flush()
	}))
	for path := range takeOver {
		for name, handler := range map[string]http.Handler{
			"direct": h,
			"unwrap": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(around{w}, r) }),
		} {
			t.Run(name+path, func(t *testing.T) {
				srv := httptest.NewServer(handler)
				defer srv.Close()
				assert.Equal(t, "HELLO\n", upgrade(t, srv, path))
			})
		}
	}
	assert.Equal(t, outcomes{success: 6}, outcomesOf(b))
}

// upgrade opens an echo connection to srv, says hello and returns the answer.
func upgrade(t *testing.T, srv *httptest.Server, path string) string {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", path)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, 101, resp.StatusCode)
	fmt.Fprint(conn, "hello\n")
	answer, err := r.ReadString('\n')
	require.NoError(t, err)
	return answer
}

// brokenFlusher is a writer whose connection is gone.
type brokenFlusher struct{ *plain }

func (brokenFlusher) FlushError() error { return io.ErrClosedPipe }

// http.ResponseController takes the Flush of the outermost writer that has one, so one
// without FlushError hides the error.
func TestS2_FlushErrorsReachTheHandler(t *testing.T) {
	for _, base := range []http.ResponseWriter{brokenFlusher{newPlain()}, around{brokenFlusher{newPlain()}}} {
		w, _ := wrap(base, incoming(t.Context()))
		require.ErrorIs(t, http.NewResponseController(w).Flush(), io.ErrClosedPipe)
		require.ErrorIs(t, http.NewResponseController(around{w}).Flush(), io.ErrClosedPipe)
		w.(http.Flusher).Flush()
	}
}

// Early hints come before the status, as often as a handler likes. Who takes the last
// status, or the first, counts 103s.
func TestS4_InformationalStatusesAreNotFinal(t *testing.T) {
	type final struct {
		path   string
		status int
		want   outcomes
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(103)
		w.WriteHeader(103)
		switch r.URL.Path {
		case "/failing":
			w.WriteHeader(500)
		case "/explicit":
			w.WriteHeader(200)
		case "/written":
			fmt.Fprint(w, "hello")
		}
	})
	b := neverTrips(t)
	overBoth(t, newGate(t, WithBreaker(b)).Wrap(h).ServeHTTP, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		for _, c := range []final{
			{"/nothing", 200, outcomes{success: 1}},
			{"/explicit", 200, outcomes{success: 1}},
			{"/written", 200, outcomes{success: 1}},
			{"/failing", 500, outcomes{failure: 1}},
		} {
			hints := 0
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil },
			})
			before := outcomesOf(b)
			resp, err := base.RoundTrip(getFrom(t, ctx, srv.URL+c.path))
			require.NoError(t, err)
			readAll(t, resp)
			assert.Equal(t, c.status, resp.StatusCode, c.path)
			assert.Equal(t, 2, hints, c.path)
			settled(t, b, before, c.want)
		}
	})
}

// A status of 101 is final, unlike its neighbours.
func TestS4_SwitchingProtocolsIsFinal(t *testing.T) {
	base := newPlain()
	w, v := wrap(base, incoming(t.Context()))
	w.WriteHeader(100)
	assert.Zero(t, v.status.Load())
	w.WriteHeader(101)
	w.WriteHeader(500)
	assert.EqualValues(t, 101, v.status.Load())
	assert.Equal(t, []int{100, 101, 500}, base.status, "all are passed on")
}

// What counts is the status that the client got: the first one, explicit or not.
func TestS5_FirstStatusCounts(t *testing.T) {
	const ok, failing = "success", "failure"
	for name, c := range map[string]struct {
		handler func(w http.ResponseWriter)
		want    string
		passed  []int
	}{
		"nothing":                  {func(http.ResponseWriter) {}, ok, nil},
		"500":                      {func(w http.ResponseWriter) { w.WriteHeader(500) }, failing, []int{500}},
		"500, then 200":            {func(w http.ResponseWriter) { w.WriteHeader(500); w.WriteHeader(200) }, failing, []int{500, 200}},
		"200, then 500":            {func(w http.ResponseWriter) { w.WriteHeader(200); w.WriteHeader(500) }, ok, []int{200, 500}},
		"Write, then 500":          {func(w http.ResponseWriter) { fmt.Fprint(w, "x"); w.WriteHeader(500) }, ok, []int{500}},
		"empty Write, then 500":    {func(w http.ResponseWriter) { _, _ = w.Write(nil); w.WriteHeader(500) }, ok, []int{500}},
		"WriteString, then 500":    {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "x"); w.WriteHeader(500) }, ok, []int{500}},
		"Flush, then 500":          {func(w http.ResponseWriter) { w.(http.Flusher).Flush(); w.WriteHeader(500) }, ok, []int{500}},
		"ReadFrom, then 500":       {func(w http.ResponseWriter) { _, _ = io.Copy(w, onlyReader{"x"}); w.WriteHeader(500) }, ok, []int{500}},
		"empty ReadFrom, then 500": {func(w http.ResponseWriter) { _, _ = io.Copy(w, onlyReader{}); w.WriteHeader(500) }, failing, []int{500}},
	} {
		b := neverTrips(t)
		base := &tcpLike{plain: newPlain()}
		newGate(t, WithBreaker(b)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.handler(w) })).
			ServeHTTP(base, incoming(t.Context()))
		want := outcomes{success: 1}
		if c.want == failing {
			want = outcomes{failure: 1}
		}
		assert.Equal(t, want, outcomesOf(b), name)
		assert.Equal(t, c.passed, base.status, name)
	}
}

// onlyReader is a reader that io.Copy knows no short way for.
type onlyReader struct{ text string }

func (r onlyReader) Read(p []byte) (int, error) { return copy(p, r.text), io.EOF }

// tcpLike is a writer with what the one of HTTP/1 has.
type tcpLike struct {
	*plain
	from []io.Reader
}

func (w *tcpLike) Flush() {}

func (w *tcpLike) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

func (w *tcpLike) ReadFrom(r io.Reader) (int64, error) {
	w.from = append(w.from, r)
	return io.Copy(&w.body, r)
}

// Copying into a writer that hides ReadFrom passes each byte of a file through the
// process instead of through the kernel.
func TestS6_FilesAreReadByTheWriterBelow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("content"), 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()

	base := &tcpLike{plain: newPlain()}
	w, _ := wrap(base, incoming(t.Context()))
	_, err = w.(io.ReaderFrom).ReadFrom(file)
	require.NoError(t, err)
	assert.Equal(t, []io.Reader{file}, base.from, "the file itself")
	assert.Equal(t, "content", base.body.String())

	// A writer in between that has no ReadFrom may count what is written: it is not
	// passed by.
	counting := newPlain()
	w, _ = wrap(sidestepped{counting, base}, incoming(t.Context()))
	n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("more"))
	require.NoError(t, err)
	assert.EqualValues(t, 4, n)
	assert.Equal(t, "more", counting.body.String())
	assert.Len(t, base.from, 1)
}

// sidestepped writes to one writer and unwraps to another.
type sidestepped struct {
	*plain
	below http.ResponseWriter
}

func (w sidestepped) Unwrap() http.ResponseWriter { return w.below }

// http.ServeContent over a real connection: ranges, lengths and all.
func TestS6_ServesFiles(t *testing.T) {
	content := strings.Repeat("0123456789", 100_000)
	path := filepath.Join(t.TempDir(), "file.txt")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	h := newGate(t, WithBreaker(newBreaker(t))).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, path)
	}))
	overBoth(t, h.ServeHTTP, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		resp, err := base.RoundTrip(getFrom(t, t.Context(), srv.URL))
		require.NoError(t, err)
		assert.EqualValues(t, len(content), resp.ContentLength)
		assert.Equal(t, content, readAll(t, resp))
		req := getFrom(t, t.Context(), srv.URL)
		req.Header.Set("Range", "bytes=10-19")
		resp, err = base.RoundTrip(req)
		require.NoError(t, err)
		assert.Equal(t, 206, resp.StatusCode)
		assert.Equal(t, "0123456789", readAll(t, resp))
	})
}

// http.MaxBytesReader closes the connection of a client that sends too much, if it is
// given the server's own writer. It does not find it in another one.
// https://github.com/golang/go/issues/73754
func TestGolang73754_BodyLimitClosesTheConnectionWithAndWithoutTheGate(t *testing.T) {
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1000)
		_, err := io.ReadAll(r.Body)
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		}
	})
	for name, handler := range map[string]http.Handler{
		"bare":      limited,
		"unwatched": newGate(t, WithMaxInFlight(10)).Wrap(limited),
		"watched":   newGate(t, WithBreaker(newBreaker(t))).Wrap(limited),
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(handler)
			defer srv.Close()
			resp, err := srv.Client().Post(srv.URL, "text/plain", strings.NewReader(strings.Repeat("x", 201<<10)))
			require.NoError(t, err)
			assert.Equal(t, 413, resp.StatusCode)
			assert.True(t, resp.Close)
			readAll(t, resp)
			resp, err = srv.Client().Post(srv.URL, "text/plain", strings.NewReader("little"))
			require.NoError(t, err)
			assert.Equal(t, 200, resp.StatusCode)
			assert.False(t, resp.Close)
			readAll(t, resp)
		})
	}
}

// Trailers are set after the body, in the very map that the server keeps.
func TestS5_TrailersArriveAfterTheBody(t *testing.T) {
	h := newGate(t, WithBreaker(newBreaker(t)), WithDeadline(time.Hour)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Announced")
		fmt.Fprint(w, "body")
		w.Header().Set("X-Announced", "a")
		w.Header().Set(http.TrailerPrefix+"X-Sudden", "s")
	}))
	overBoth(t, h.ServeHTTP, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		resp, err := base.RoundTrip(getFrom(t, t.Context(), srv.URL))
		require.NoError(t, err)
		assert.Equal(t, "body", readAll(t, resp))
		assert.Equal(t, "a", resp.Trailer.Get("X-Announced"))
		assert.Equal(t, "s", resp.Trailer.Get("X-Sudden"))
	})
}

// A handler that reads while it writes, as proxies of streams do.
func TestS1_FullDuplex(t *testing.T) {
	h := newGate(t, WithBreaker(newBreaker(t))).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if r.ProtoMajor == 1 {
			assert.NoError(t, c.EnableFullDuplex())
		}
		w.WriteHeader(200)
		assert.NoError(t, c.Flush())
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintln(w, strings.ToUpper(lines.Text()))
			assert.NoError(t, c.Flush())
		}
	}))
	overBoth(t, h.ServeHTTP, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		body, client := io.Pipe()
		req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, srv.URL, body)
		require.NoError(t, err)
		resp, err := base.RoundTrip(req)
		require.NoError(t, err)
		answers := bufio.NewReader(resp.Body)
		for _, word := range []string{"one", "two"} {
			fmt.Fprintln(client, word)
			answer, err := answers.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, strings.ToUpper(word)+"\n", answer)
		}
		require.NoError(t, client.Close())
		readAll(t, resp)
	})
}
