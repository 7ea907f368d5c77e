package guardtest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

func outerRequestUntouched(t *trial, wrap func(http.Handler) http.Handler) {
	inner := mount(wrap, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	r := t.arrival(http.MethodPost, strings.NewReader("body"))
	r.Header.Set("X-Client", "here")
	before, header, address := *r, r.Header.Clone(), *r.URL
	inner.ServeHTTP(httptest.NewRecorder(), r)
	switch {
	case r.Body != before.Body:
		t.errorf("Body is another one")
	case r.Method != before.Method, r.Host != before.Host, r.RemoteAddr != before.RemoteAddr, r.RequestURI != before.RequestURI, r.ContentLength != before.ContentLength:
		t.errorf("it is now %s %s of %s, %d bytes", r.Method, r.RequestURI, r.RemoteAddr, r.ContentLength)
	case r.URL != before.URL, *r.URL != address:
		t.errorf("URL is now %v", r.URL)
	case !maps.EqualFunc(r.Header, header, slices.Equal):
		t.errorf("Header is now %v", r.Header)
	case r.Context() != before.Context():
		t.errorf("the context is another one")
	}
}

func patternSeenInside(t *trial, wrap func(http.Handler) http.Handler) {
	mux := http.NewServeMux()
	mux.Handle("GET /items/{id}", wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Pattern != "GET /items/{id}" || r.PathValue("id") != "7" {
			t.errorf("the pattern is %q and the id %q", r.Pattern, r.PathValue("id"))
		}
	})))
	mux.ServeHTTP(httptest.NewRecorder(), t.arrival(http.MethodGet, nil))
}

func patternSeenOutside(t *trial, wrap func(http.Handler) http.Handler) {
	mux := http.NewServeMux()
	mux.Handle("GET /items/{id}", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := t.arrival(http.MethodGet, nil)
	wrap(mux).ServeHTTP(httptest.NewRecorder(), r)
	if r.Pattern != "GET /items/{id}" {
		t.errorf("the pattern is %q", r.Pattern)
	}
}

func serverContextKept(t *trial, wrap func(http.Handler) http.Handler) {
	inner := mount(wrap, func(_ http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if _, ok := ctx.Value(http.ServerContextKey).(*http.Server); !ok {
			t.errorf("the server is not in the context")
		}
		if _, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr); !ok {
			t.errorf("the local address is not in the context")
		}
		if ctx.Value(callerKey{}) != "outer" {
			t.errorf("what an outer wrapper has put there is not in the context")
		}
	})
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, "outer")))
	}))
	t.read(t.send(s.base, t.request(http.MethodGet, s.url, nil)))
}

func uploadArrivesAtOnce(t *trial, wrap func(http.Handler) http.Handler) {
	handler, body := t.upload()
	s := t.serve(mount(wrap, handler))
	t.read(t.send(s.base, t.request(http.MethodPut, s.url, body)))
}

func fullDuplexWorks(t *trial, wrap func(http.Handler) http.Handler) {
	s := t.serve(mount(wrap, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 needs none
		flush(w)
		piece := make([]byte, 4)
		for {
			if _, err := io.ReadFull(r.Body, piece); err != nil {
				return
			}
			_, _ = w.Write(piece)
			flush(w)
		}
	}))
	body, client := io.Pipe()
	gaveUp := context.AfterFunc(t.ctx, func() { _ = client.Close() })
	defer gaveUp()
	resp := t.send(s.base, t.request(http.MethodPost, s.url, body))
	for _, word := range []string{"ping", "pong"} {
		echo := make([]byte, 4)
		if _, err := io.WriteString(client, word); err != nil {
			t.fatalf("writing to the body fails: %v", err)
		}
		if _, err := io.ReadFull(resp.Body, echo); string(echo) != word {
			t.fatalf("the echo of %q is %q, %v", word, echo, err)
		}
	}
	_ = client.Close()
	t.read(resp)
}

func expectContinueLeftToHandler(t *trial, wrap func(http.Handler) http.Handler) {
	s := t.serve(mount(wrap, unwilling))
	t.expects417(s, s.base)
}

func tooLargeClosesConnection(t *trial, wrap func(http.Handler) http.Handler) {
	s := t.serve(mount(wrap, func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 1000)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		}
	}))
	// So little that the server by itself would rather read the rest of it.
	resp := t.send(s.base, t.request(http.MethodPost, s.url, strings.NewReader(strings.Repeat("x", 100_000))))
	if t.read(resp); resp.StatusCode != http.StatusRequestEntityTooLarge || !resp.Close {
		t.errorf("the status is %d, and the connection is closed: %v", resp.StatusCode, resp.Close)
	}
}

func requestTrailersArrive(t *trial, wrap func(http.Handler) http.Handler) {
	s := t.serve(mount(wrap, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if got := r.Trailer.Get("X-Sum"); got != "7" {
			t.errorf("the trailer is %q, not %q", got, "7")
		}
	}))
	req := t.request(http.MethodPost, s.url, watch("body"))
	req.ContentLength = -1
	req.Trailer = http.Header{"X-Sum": {"7"}}
	t.read(t.send(s.base, req))
}

func multipartFilesRemoved(t *trial, wrap func(http.Handler) http.Handler) {
	var path atomic.Value
	s := t.serve(mount(wrap, func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.errorf("the form does not arrive: %v", err)
			return
		}
		f, _, err := r.FormFile("file")
		if err != nil {
			t.errorf("the file does not arrive: %v", err)
			return
		}
		defer f.Close()
		if onDisk, ok := f.(*os.File); ok {
			path.Store(onDisk.Name())
		}
	}))
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	file, err := parts.CreateFormFile("file", "large.bin")
	if err != nil {
		t.fatalf("%v", err)
	}
	_, _ = io.WriteString(file, "more than is to be kept in memory")
	_ = parts.Close()
	req := t.request(http.MethodPost, s.url, &form)
	req.Header.Set("Content-Type", parts.FormDataContentType())
	t.read(t.send(s.base, req))
	name, ok := path.Load().(string)
	if !ok {
		t.fatalf("the file was not put on disk")
	}
	t.cleanup(func() { _ = os.Remove(name) })
	t.eventually(func() bool { _, err := os.Stat(name); return os.IsNotExist(err) }, "the file of the form to be removed")
}
