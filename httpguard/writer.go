package httpguard

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
)

// writer is the ResponseWriter that a handler gets when somebody has to know how the
// response goes. It has what every ResponseWriter has; the types around it add what
// the one below can do as well, and no more, since handlers find out by asking.
//
// Headers are those of the writer below, so that trailers work. What net/http asks
// for by Unwrap (deadlines, full duplex) it finds there.
type writer struct {
	http.ResponseWriter
	visit
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader passes the status on, and notes the first one that is final. Those from
// 100 to 199 come before it, any number of times and maybe from another goroutine,
// except 101.
func (w *writer) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.commit(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	w.commit(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

func (w *writer) WriteString(s string) (int, error) {
	w.commit(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

// ofVisit is how Fail and others find the visits that a ResponseWriter belongs to.
func (w *writer) ofVisit() *visit { return &w.visit }

// flusher is the writer over one that can flush: with both methods, since
// http.ResponseController prefers the one that returns an error, and others know only
// the other.
type flusher struct{ writer }

// Flush is FlushError for those who do not want to know.
func (w *flusher) Flush() { _ = w.FlushError() }

// FlushError sends what there is, headers included.
func (w *flusher) FlushError() error {
	w.commit(http.StatusOK)
	w.begin(w.Header())
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// http1Writer is the writer over one of HTTP/1.
type http1Writer struct{ flusher }

// WriteHeader closes the connection after 413. http.MaxBytesReader does so itself, but
// does not find the server's writer in another one: https://github.com/golang/go/issues/73754
func (w *http1Writer) WriteHeader(status int) {
	if status == http.StatusRequestEntityTooLarge && w.status.Load() == 0 {
		w.Header().Set("Connection", "close")
	}
	w.flusher.WriteHeader(status)
}

// ReadFrom lets the writer below read from src, which may be a file that it need not
// look at.
func (w *http1Writer) ReadFrom(src io.Reader) (n int64, err error) {
	if to, ok := w.ResponseWriter.(io.ReaderFrom); ok {
		n, err = to.ReadFrom(src)
	} else {
		n, err = io.Copy(onlyWriter{w.ResponseWriter}, src)
	}
	if n > 0 { // without a byte nothing was sent, and the status is still open
		w.commit(http.StatusOK)
	}
	return n, err
}

// onlyWriter hides all but Write.
type onlyWriter struct{ io.Writer }

// Hijack hands the connection to the handler. For the Gate the request is over.
func (w *http1Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

func (w *writer) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.takenOver()
	}
	return conn, buffered, err
}

// CloseNotify tells when the client has left. Some frameworks still ask for it, and
// panic if it is not there.
func (w *http1Writer) CloseNotify() <-chan bool { return w.closeNotify() }

func (w *writer) closeNotify() <-chan bool {
	if below, ok := find[closeNotifier](w.ResponseWriter); ok {
		return below.CloseNotify()
	}
	gone := make(chan bool, 1)
	context.AfterFunc(w.request.Context(), func() { gone <- true })
	return gone
}

// find returns the first of w and the writers that it says it is around that is a T.
func find[T any](w http.ResponseWriter) (found T, ok bool) {
	for w != nil {
		if found, ok = w.(T); ok {
			break
		}
		around, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			break
		}
		w = around.Unwrap()
	}
	return found, ok
}

// closeNotifier is http.CloseNotifier, which is deprecated, and has to be passed on all
// the same.
type closeNotifier interface{ CloseNotify() <-chan bool }

// hijacker is the writer over one that can be taken over and not flush, as those are
// that others put around the server's for the sake of websockets.
type hijacker struct{ writer }

// Hijack is as for http1Writer.
func (w *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

// http2Writer is the writer over one of HTTP/2.
type http2Writer struct {
	flusher
	pusher http.Pusher
}

// Push starts a server push, where the client still allows it.
func (w *http2Writer) Push(target string, opts *http.PushOptions) error {
	return w.pusher.Push(target, opts)
}

// CloseNotify is as for http1Writer.
func (w *http2Writer) CloseNotify() <-chan bool { return w.closeNotify() }

// wrap returns a writer over base with its visit, which is the caller's to fill in.
func wrap(base http.ResponseWriter, r *http.Request) (http.ResponseWriter, *visit) {
	flushes, hijacks, pusher := abilities(base)
	switch {
	case hijacks && flushes && (pusher == nil || r.ProtoMajor < 2):
		w := &http1Writer{flusher{writer{ResponseWriter: base}}}
		return w, &w.visit
	case pusher != nil && flushes:
		w := &http2Writer{flusher{writer{ResponseWriter: base}}, pusher}
		return w, &w.visit
	case flushes:
		w := &flusher{writer{ResponseWriter: base}}
		return w, &w.visit
	case hijacks:
		w := &hijacker{writer{ResponseWriter: base}}
		return w, &w.visit
	}
	w := &writer{ResponseWriter: base}
	return w, &w.visit
}

// abilities asks base, and the writers that it says it is around, what they can do.
func abilities(base http.ResponseWriter) (flushes, hijacks bool, pusher http.Pusher) {
	for base != nil {
		if !flushes {
			switch base.(type) {
			case http.Flusher, interface{ FlushError() error }:
				flushes = true
			}
		}
		if !hijacks {
			_, hijacks = base.(http.Hijacker)
		}
		if pusher == nil {
			pusher, _ = base.(http.Pusher)
		}
		if flushes && hijacks {
			break
		}
		around, ok := base.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		base = around.Unwrap()
	}
	return flushes, hijacks, pusher
}
