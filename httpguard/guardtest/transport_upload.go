package guardtest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

func uploadStreamed(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	handler, body := t.upload()
	s := t.serve(handler)
	t.read(t.send(wrap(s.base), t.request(http.MethodPut, s.url, body)))
}

// upload is a body, and a handler that has to get the first part of it before the
// second one is written.
func (t *trial) upload() (http.HandlerFunc, io.Reader) {
	arrived, begun, written := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	t.cleanup(func() { <-written })
	body, rest := io.Pipe()
	context.AfterFunc(t.ctx, func() {
		select {
		case <-begun:
		default: // nobody reads it at all
			_ = body.Close()
		}
	})
	go func() {
		defer close(written)
		_, _ = rest.Write([]byte("first"))
		close(begun)
		if !t.reached(arrived, "the first bytes to arrive while there are more to come") {
			_ = rest.CloseWithError(context.Canceled)
			return
		}
		_, _ = rest.Write([]byte("second"))
		_ = rest.Close()
	}()
	return func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadFull(r.Body, make([]byte, 5)); err == nil {
			arrived <- struct{}{}
		}
		if rest, err := io.ReadAll(r.Body); string(rest) != "second" || err != nil {
			t.errorf("the rest arrives as %q, %v, not as %q", rest, err, "second")
		}
	}, body
}

// tripwire is a body that notes when it is read.
type tripwire struct {
	watched
	t *trial
}

func (b *tripwire) Read(p []byte) (int, error) {
	b.t.errorf("the body is read, though the server did not ask for it")
	return b.watched.Read(p)
}

func expectContinueKept(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(unwilling))
	t.expects417(s, wrap(s.base))
}

// unwilling is a handler that does not want the body.
func unwilling(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusExpectationFailed) }

// expects417 offers the body of a request to an unwilling server.
func (t *trial) expects417(s *site, rt http.RoundTripper) {
	s.base.ExpectContinueTimeout = time.Hour
	body := &tripwire{t: t}
	body.Reader = strings.NewReader("body")
	req := t.request(http.MethodPut, s.url, body)
	req.ContentLength = 4
	req.Header.Set("Expect", "100-continue")
	if resp := t.send(rt, req); resp.StatusCode != http.StatusExpectationFailed {
		t.errorf("the status is %d, not 417", resp.StatusCode)
	}
}

func bodyClosedAfterAnswer(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	body := watch("body")
	t.read(t.send(wrap(s.base), t.request(http.MethodPost, s.url, body)))
	t.eventually(body.isClosed, "the request body to be closed")
}

func bodyClosedWhenContextDone(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.NotFoundHandler())
	body := watch("body")
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	t.mustFail(wrap(s.base), t.request(http.MethodPost, s.url, body).WithContext(ctx))
	t.eventually(body.isClosed, "the request body to be closed")
}

func bodyClosedWhenDialFails(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.NotFoundHandler())
	body := watch("body")
	t.mustFail(wrap(s.base), t.request(http.MethodPost, "http://"+t.nowhere(), body))
	t.eventually(body.isClosed, "the request body to be closed")
}

// mustFail makes a call that has to fail, and returns its error.
func (t *trial) mustFail(rt http.RoundTripper, req *http.Request) error {
	resp, err := rt.RoundTrip(req)
	if err == nil {
		t.fatalf("%s %s is answered with %d and no error", req.Method, path(req), resp.StatusCode)
	}
	if resp != nil {
		t.errorf("there is a response beside the error %v", err)
	}
	return err
}
