package guardtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"
)

// mount puts a handler behind the wrapper and that into a mux, under a pattern for
// everything.
func mount(wrap func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/{path...}", wrap(h))
	return mux
}

// bare is wrap for what it is compared with.
func bare(next http.Handler) http.Handler { return next }

// abilities are what a ResponseWriter can do, by assertion.
func abilities(w http.ResponseWriter) map[string]bool {
	can := map[string]bool{}
	_, can["http.Flusher"] = w.(http.Flusher)
	_, can["FlushError"] = w.(interface{ FlushError() error })
	_, can["http.Hijacker"] = w.(http.Hijacker)
	_, can["http.Pusher"] = w.(http.Pusher)
	_, can["io.ReaderFrom"] = w.(io.ReaderFrom)
	_, can["io.StringWriter"] = w.(io.StringWriter)
	return can
}

// seenInHandler is what look says of the writer in a handler behind a real server.
func seenInHandler[V any](t *trial, wrap func(http.Handler) http.Handler, look func(http.ResponseWriter) V) V {
	seen := make(chan V, 1)
	s := t.serve(mount(wrap, func(w http.ResponseWriter, _ *http.Request) { seen <- look(w) }))
	t.read(t.send(s.base, t.request(http.MethodGet, s.url, nil)))
	select {
	case v := <-seen:
		return v
	default:
		t.fatalf("the handler was not called")
		panic("unreachable")
	}
}

func writerHidesNothing(t *trial, wrap func(http.Handler) http.Handler) {
	can := seenInHandler(t, wrap, abilities)
	for name, should := range seenInHandler(t, bare, abilities) {
		if should && !can[name] {
			t.errorf("the writer is no %s", name)
		}
	}
}

func writerFakesNothing(t *trial, wrap func(http.Handler) http.Handler) {
	could := seenInHandler(t, bare, abilities)
	for name, can := range seenInHandler(t, wrap, abilities) {
		if can && !could[name] {
			t.errorf("the writer is a %s, and the server's is not", name)
		}
	}
}

// controls is what a ResponseController says.
func controls(w http.ResponseWriter) map[string]error {
	c := http.NewResponseController(w)
	return map[string]error{
		"SetReadDeadline":  c.SetReadDeadline(time.Time{}), // which is none
		"SetWriteDeadline": c.SetWriteDeadline(time.Time{}),
		"EnableFullDuplex": c.EnableFullDuplex(),
		"Flush":            c.Flush(),
	}
}

func (t *trial) sameControls(wrap func(http.Handler) http.Handler) {
	got := seenInHandler(t, wrap, controls)
	for name, want := range seenInHandler(t, bare, controls) {
		if (got[name] == nil) != (want == nil) {
			t.errorf("%s says %v, and without the wrapper %v", name, got[name], want)
		}
	}
}

func controllerWorks(t *trial, wrap func(http.Handler) http.Handler) { t.sameControls(wrap) }

func controllerWorksThroughUnwrap(t *trial, wrap func(http.Handler) http.Handler) {
	t.sameControls(func(next http.Handler) http.Handler {
		inner := wrap(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inner.ServeHTTP(onlyUnwrap{w}, r) })
	})
}

// onlyUnwrap is a writer with the methods of http.ResponseWriter and Unwrap.
type onlyUnwrap struct{ w http.ResponseWriter }

func (o onlyUnwrap) Header() http.Header         { return o.w.Header() }
func (o onlyUnwrap) Write(p []byte) (int, error) { return o.w.Write(p) }
func (o onlyUnwrap) WriteHeader(status int)      { o.w.WriteHeader(status) }
func (o onlyUnwrap) Unwrap() http.ResponseWriter { return o.w }

func hijackWorks(t *trial, wrap func(http.Handler) http.Handler) {
	for name, hijack := range map[string]func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
		"http.Hijacker": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			h, ok := w.(http.Hijacker)
			if !ok {
				return nil, nil, errors.New("it is none")
			}
			return h.Hijack()
		},
		"http.ResponseController": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
	} {
		s := t.serve(mount(wrap, func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := hijack(w)
			if err != nil {
				t.errorf("hijacking by %s fails: %v", name, err)
				return
			}
			defer conn.Close()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = rw.Flush()
			_, _ = io.Copy(conn, rw)
		}))
		req := t.request(http.MethodGet, s.url, nil)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		resp := t.send(s.base, req)
		conn, ok := resp.Body.(io.ReadWriteCloser)
		if !ok {
			t.errorf("after hijacking by %s the answer is %d", name, resp.StatusCode)
			continue
		}
		t.echoes(conn, bufio.NewReader(conn))
		_ = conn.Close()
	}
}

// arrival is a request that is no real one, for a handler behind the wrapper.
func (t *trial) arrival(method string, body io.Reader) *http.Request {
	return httptest.NewRequestWithContext(t.ctx, method, "/items/7", body)
}

var errGone = errors.New("the connection is gone")

// failing is a writer whose connection is gone.
type failing struct{ *httptest.ResponseRecorder }

func (f failing) FlushError() error           { return errGone }
func (f failing) Write(p []byte) (int, error) { return min(1, len(p)), errGone }

func flushErrorArrives(t *trial, wrap func(http.Handler) http.Handler) {
	inner := mount(wrap, func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, errGone) {
			t.errorf("Flush of the controller says %v", err)
		}
	})
	inner.ServeHTTP(failing{httptest.NewRecorder()}, t.arrival(http.MethodGet, nil))
}

func writeErrorArrives(t *trial, wrap func(http.Handler) http.Handler) {
	inner := mount(wrap, func(w http.ResponseWriter, _ *http.Request) {
		if n, err := w.Write([]byte("body")); n != 1 || !errors.Is(err, errGone) {
			t.errorf("Write of 4 bytes, of which 1 is written, says %d, %v", n, err)
		}
	})
	inner.ServeHTTP(failing{httptest.NewRecorder()}, t.arrival(http.MethodGet, nil))
}

// server1Writer is what the writer of a server of HTTP/1.1 can do.
type server1Writer interface {
	http.ResponseWriter
	http.Flusher
	FlushError() error
	http.Hijacker
	io.ReaderFrom
	io.StringWriter
}

// sending is such a writer that notes when it may send a file by itself.
type sending struct {
	server1Writer
	sent *atomic.Int64
}

func (s sending) ReadFrom(src io.Reader) (int64, error) {
	s.sent.Add(1)
	return s.server1Writer.ReadFrom(src)
}

func readFromArrives(t *trial, wrap func(http.Handler) http.Handler) {
	var sent atomic.Int64
	inner := mount(wrap, func(w http.ResponseWriter, _ *http.Request) {
		// Only a reader: strings.Reader would write itself.
		if n, err := io.Copy(w, struct{ io.Reader }{strings.NewReader("body")}); n != 4 || err != nil {
			t.errorf("io.Copy says %d, %v", n, err)
		}
	})
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(sending{w.(server1Writer), &sent}, r)
	}))
	t.read(t.send(s.base, t.request(http.MethodGet, s.url, nil)))
	if n := sent.Load(); n != 1 {
		t.errorf("ReadFrom was called %d times", n)
	}
}

func headerShared(t *trial, wrap func(http.Handler) http.Handler) {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("X-Outside", "1")
	inner := mount(wrap, func(w http.ResponseWriter, _ *http.Request) {
		if w.Header().Get("X-Outside") != "1" {
			t.errorf("what was set outside is not seen in the handler")
		}
		_, _ = fmt.Fprint(w, "body")
		w.Header().Set("X-Inside", "1")
	})
	inner.ServeHTTP(recorder, t.arrival(http.MethodGet, nil))
	if recorder.Header().Get("X-Inside") != "1" {
		t.errorf("what the handler set is not seen outside")
	}
}
