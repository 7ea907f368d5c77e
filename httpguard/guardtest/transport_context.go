package guardtest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"
)

type callerKey struct{}

func contextValuesKept(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	rt := wrap(base(func(req *http.Request) (*http.Response, error) {
		if got := req.Context().Value(callerKey{}); got != "caller" {
			t.errorf("the value is %v, not %q", got, "caller")
		}
		return respond(req, 200, http.NoBody), nil
	}))
	t.read(t.send(rt, t.get().WithContext(context.WithValue(t.ctx, callerKey{}, "caller"))))
}

// hanging is a server that answers nothing, or the headers and no body, until the
// client is gone.
func (t *trial) hanging(headers bool) (s *site, arrived, gone chan struct{}) {
	arrived, gone = make(chan struct{}, 100), make(chan struct{}, 100)
	s = t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if headers {
			_, _ = io.WriteString(w, "first")
			flush(w)
		}
		arrived <- struct{}{}
		select {
		case <-r.Context().Done():
			gone <- struct{}{}
		case <-t.ctx.Done():
		}
	}))
	return s, arrived, gone
}

func cancelEndsCall(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s, arrived, gone := t.hanging(false)
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	go func() {
		if t.reached(arrived, "the request to arrive") {
			cancel()
		}
	}()
	err := t.mustFail(wrap(s.base), t.request(http.MethodGet, s.url, nil).WithContext(ctx))
	if !errors.Is(err, context.Canceled) {
		t.errorf("the error is %v, which does not match context.Canceled", err)
	}
	t.await(gone, "the server to learn of it")
}

func cancelEndsBody(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s, _, gone := t.hanging(true)
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	resp := t.send(wrap(s.base), t.request(http.MethodGet, s.url, nil).WithContext(ctx))
	if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
		t.fatalf("reading what was sent fails: %v", err)
	}
	cancel()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.errorf("the body seems to have come to its end")
	}
	t.await(gone, "the server to learn of it")
}

// deadlines is how many calls run into one, since a wrapper that has timers of its own
// may be right only if they come late.
const deadlines = 8

func deadlineEndsCall(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s, _, _ := t.hanging(false)
	rt := wrap(s.base)
	for range deadlines {
		ctx, cancel := context.WithTimeout(t.ctx, 20*time.Millisecond)
		err := t.mustFail(rt, t.request(http.MethodGet, s.url, nil).WithContext(ctx))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.fatalf("the error is %v, which does not match context.DeadlineExceeded", err)
		}
	}
}

func clientTimeoutEndsCall(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s, _, _ := t.hanging(false)
	client := &http.Client{Transport: wrap(s.base), Timeout: 20 * time.Millisecond}
	for range deadlines {
		resp, err := client.Do(t.request(http.MethodGet, s.url, nil))
		if err == nil {
			_ = resp.Body.Close()
			t.fatalf("the call is answered with %d", resp.StatusCode)
		}
		t.saysTimeout(err)
	}
}

func clientTimeoutEndsBody(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s, _, _ := t.hanging(true)
	client := &http.Client{Transport: wrap(s.base), Timeout: 200 * time.Millisecond}
	resp, err := client.Do(t.request(http.MethodGet, s.url, nil))
	if err != nil { // on a machine that took too long to begin
		t.saysTimeout(err)
		return
	}
	defer resp.Body.Close()
	if _, err = io.ReadAll(resp.Body); err == nil {
		t.fatalf("the body seems to have come to its end")
	}
	t.saysTimeout(err)
}

func (t *trial) saysTimeout(err error) {
	var limit net.Error
	if !errors.As(err, &limit) || !limit.Timeout() || t.ctx.Err() != nil {
		t.fatalf("the error is %v, which does not say Timeout", err)
	}
}

func requestCancelKept(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s, arrived, gone := t.hanging(false)
	req := t.request(http.MethodGet, s.url, nil)
	cancel := make(chan struct{})
	//lint:ignore SA1019 this is what is examined
	req.Cancel = cancel
	go func() {
		if t.reached(arrived, "the request to arrive") {
			close(cancel)
		}
	}()
	t.mustFail(wrap(s.base), req)
	t.await(gone, "the server to learn of it")
}

func traceKept(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
	}))
	var connected, written, hints atomic.Int64
	ctx := httptrace.WithClientTrace(t.ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { connected.Add(1) },
		WroteHeaders: func() { written.Add(1) },
		Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			if code == http.StatusEarlyHints && len(header["Link"]) == 1 {
				hints.Add(1)
			}
			return nil
		},
	})
	t.read(t.send(wrap(s.base), t.request(http.MethodGet, s.url, nil).WithContext(ctx)))
	for name, n := range map[string]int64{"GotConn": connected.Load(), "WroteHeaders": written.Load(), "Got1xxResponse with 103": hints.Load()} {
		if n != 1 {
			t.errorf("%s was called %d times", name, n)
		}
	}
}

func contextLivesAsLongAsBody(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	const pieces, size = 32, 16 << 10
	returned := make(chan struct{})
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		flush(w)
		if !t.reached(returned, "RoundTrip to return at the headers") {
			return
		}
		for range pieces {
			_, _ = io.WriteString(w, strings.Repeat("x", size))
			flush(w)
		}
	}))
	resp := t.send(wrap(s.base), t.request(http.MethodGet, s.url, nil))
	// What a context that has just ended sets going needs a moment to arrive.
	time.AfterFunc(50*time.Millisecond, func() { close(returned) })
	if n := len(t.read(resp)); n != pieces*size {
		t.errorf("the body has %d bytes, not %d", n, pieces*size)
	}
}

func contextReleased(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	broken := errors.New("broken")
	for _, c := range []struct {
		how  string
		body io.Reader // nil: the call fails
		end  func(body io.ReadCloser)
	}{
		{"the body was read to its end", strings.NewReader("body"), readOut},
		{"reading the body failed", brokenReader{broken}, readOut},
		{"the body was closed", strings.NewReader("body"), func(body io.ReadCloser) { _ = body.Close() }},
		{"the call failed", nil, nil},
	} {
		ctx, cancel := context.WithCancel(t.ctx)
		defer cancel()
		var inner context.Context
		rt := wrap(base(func(req *http.Request) (*http.Response, error) {
			inner = req.Context()
			if c.body == nil {
				return nil, broken
			}
			return respond(req, 200, &watched{Reader: c.body}), nil
		}))
		req := t.get().WithContext(ctx)
		if c.body == nil {
			t.mustFail(rt, req)
		} else {
			c.end(t.send(rt, req).Body)
		}
		if inner.Done() != ctx.Done() { // one of its own
			t.eventually(func() bool { return inner.Err() != nil }, "the derived context to end, after "+c.how)
		}
	}
}

func readOut(body io.ReadCloser) { _, _ = io.Copy(io.Discard, body) }

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }
