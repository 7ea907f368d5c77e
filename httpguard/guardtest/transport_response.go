package guardtest

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// toldStatus is a server that answers with the status that the path names.
func (t *trial) toldStatus() *site {
	return t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.Header().Set("X-Server", "here")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "answer "+r.URL.Path[1:])
	}))
}

func statusIsNoError(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.toldStatus()
	for _, status := range []int{200, 400, 404, 408, 429, 500, 501, 502, 503, 504} {
		resp, err := wrap(s.base).RoundTrip(t.request(http.MethodGet, s.url+"/"+strconv.Itoa(status), nil))
		if err != nil {
			t.errorf("%d becomes the error %v", status, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != status || resp.Header.Get("X-Server") != "here" {
			t.errorf("%d becomes %d with header %v", status, resp.StatusCode, resp.Header)
		}
		if want := "answer " + strconv.Itoa(status); string(body) != want || err != nil {
			t.errorf("the body of %d is %q, %v, not %q", status, body, err, want)
		}
	}
}

func responseKept(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Twice"] = []string{"a", "b"}
		switch r.URL.Path {
		case "/chunked":
			flush(w)
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
		}
		_, _ = w.Write(gzipped)
	}))
	var made *http.Response
	rt := wrap(base(func(req *http.Request) (*http.Response, error) {
		resp, err := s.base.RoundTrip(req)
		if resp != nil {
			copied := *resp
			copied.Header = resp.Header.Clone()
			made = &copied
		}
		return resp, err
	}))
	for _, path := range []string{"/known", "/chunked", "/gzip"} {
		resp := t.send(rt, t.request(http.MethodGet, s.url+path, nil))
		t.read(resp)
		switch {
		case resp.Status != made.Status, resp.Proto != made.Proto, resp.ProtoMajor != made.ProtoMajor, resp.ProtoMinor != made.ProtoMinor:
			t.errorf("%s: it is now %s %s", path, resp.Proto, resp.Status)
		case resp.ContentLength != made.ContentLength, resp.Uncompressed != made.Uncompressed, !slices.Equal(resp.TransferEncoding, made.TransferEncoding):
			t.errorf("%s: its length is now %d, its encoding %v, uncompressed %v", path, resp.ContentLength, resp.TransferEncoding, resp.Uncompressed)
		case !maps.EqualFunc(resp.Header, made.Header, slices.Equal):
			t.errorf("%s: its header is now %v, not %v", path, resp.Header, made.Header)
		case resp.Request == nil:
			t.errorf("%s: its Request is nil", path)
		}
	}
}

// gzipped is an empty file, compressed.
var gzipped = []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00")

func trailersArrive(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(trailing))
	t.hasTrailers(s, wrap(s.base))
}

// trailing is a handler that sets a trailer, which it has announced or not.
func trailing(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/announced" {
		w.Header().Set("Trailer", "X-Sum")
		defer w.Header().Set("X-Sum", "7")
	} else {
		defer w.Header().Set(http.TrailerPrefix+"X-Sum", "7")
	}
	_, _ = io.WriteString(w, "body")
	flush(w)
}

// hasTrailers looks for those of trailing.
func (t *trial) hasTrailers(s *site, rt http.RoundTripper) {
	for _, path := range []string{"/announced", "/surprise"} {
		resp := t.send(rt, t.request(http.MethodGet, s.url+path, nil))
		t.read(resp)
		if got := resp.Trailer.Get("X-Sum"); got != "7" {
			t.errorf("%s: the trailer is %q, not %q", path, got, "7")
		}
	}
}

func earlyAnswerArrives(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // or HTTP/1.1 reads the body first
		w.WriteHeader(http.StatusAccepted)
		flush(w)
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	body, rest := io.Pipe()
	gaveUp := context.AfterFunc(t.ctx, func() { _ = rest.Close() })
	defer gaveUp()
	resp := t.send(wrap(s.base), t.request(http.MethodPost, s.url, body))
	if resp.StatusCode != http.StatusAccepted {
		t.errorf("the status is %d, not 202", resp.StatusCode)
	}
	_ = rest.Close()
	t.read(resp)
}

func oddBaseSurvived(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	broken := errors.New("broken")
	bodiless := func(req *http.Request) *http.Response {
		resp := respond(req, 200, nil)
		resp.ContentLength = 0
		return resp
	}
	for _, c := range []struct {
		returns string
		base    base
		fail    bool
	}{
		{"a nil body", func(req *http.Request) (*http.Response, error) { return bodiless(req), nil }, false},
		{"nothing", func(*http.Request) (*http.Response, error) { return nil, nil }, true},
		{"a response and an error", func(req *http.Request) (*http.Response, error) { return respond(req, 200, watch("")), broken }, true},
		{"a bodiless response and an error", func(req *http.Request) (*http.Response, error) { return bodiless(req), broken }, true},
	} {
		var resp *http.Response
		var err error
		rt := wrap(c.base)
		returned, panicked := t.apart(func() {
			if resp, err = rt.RoundTrip(t.get()); err == nil && resp != nil && resp.Body != nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
		})
		if !returned {
			t.errorf("a base that returns %s makes it panic: %v", c.returns, panicked)
			continue
		}
		if failed := err != nil || resp == nil; failed != c.fail {
			t.errorf("a base that returns %s leads to the error %v", c.returns, err)
		}
	}
}

func secretsNotInErrors(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.NotFoundHandler())
	req := t.request(http.MethodGet, "http://user:hunter2@"+t.nowhere()+"/", nil)
	if err := t.mustFail(wrap(s.base), req); strings.Contains(err.Error(), "hunter2") {
		t.errorf("the error is %v", err)
	}
}

func eventsArriveAtOnce(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	handler, seen := t.events()
	s := t.serve(handler)
	t.readEvents(t.send(wrap(s.base), t.request(http.MethodGet, s.url, nil)), seen)
}

const events, event = 3, "data: x\n\n"

// events is a handler that sends the next event when the last one was seen.
func (t *trial) events() (handler http.HandlerFunc, seen chan struct{}) {
	seen = make(chan struct{}, events)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range events {
			_, _ = io.WriteString(w, event)
			flush(w)
			if !t.reached(seen, "an event to be read before the next one is sent") {
				return
			}
		}
	}, seen
}

func (t *trial) readEvents(resp *http.Response, seen chan struct{}) {
	for range events {
		if _, err := io.ReadFull(resp.Body, make([]byte, len(event))); err != nil {
			t.fatalf("reading an event fails: %v", err)
		}
		seen <- struct{}{}
	}
	if rest := t.read(resp); rest != "" {
		t.errorf("after the last event there is %q", rest)
	}
}

func closeReachesBase(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	for _, first := range []int64{0, 1, 4} {
		body := watch("body")
		rt := wrap(base(func(req *http.Request) (*http.Response, error) { return respond(req, 200, body), nil }))
		resp := t.send(rt, t.get())
		if _, err := io.CopyN(io.Discard, resp.Body, first); err != nil {
			t.fatalf("reading fails: %v", err)
		}
		for range 2 {
			if err := resp.Body.Close(); err != nil {
				t.errorf("Close after %d of 4 bytes fails: %v", first, err)
			}
		}
		if !body.isClosed() {
			t.errorf("Close after %d of 4 bytes does not reach the body of the base", first)
		}
	}
}

func brokenAnswerIsAnError(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "half of")
			flush(w)
			time.Sleep(time.Millisecond) // let it be read in two pieces, mostly
		}
		panic(http.ErrAbortHandler)
	}))
	// A POST, so that nobody repeats it.
	t.mustFail(wrap(s.base), t.request(http.MethodPost, s.url+"/headers", nil))
	resp := t.send(wrap(s.base), t.request(http.MethodPost, s.url+"/body", nil))
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.errorf("the body ends as if it were whole, with %q", body)
	}
}
