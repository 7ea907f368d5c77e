package guardtest

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
)

func refusalWellFormed(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	rt, u := t.refusing(wrap)
	before := u.calls.Load()
	resp, err := rt.RoundTrip(t.get())
	switch {
	case u.calls.Load() > before:
		t.skipf("it refuses some calls and lets others pass")
	case err != nil && resp != nil:
		t.errorf("there is a response beside the error %v", err)
	case err == nil && resp == nil:
		t.errorf("there is neither a response nor an error")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		t.errorf("the error is %v, but the caller's context is alive", err)
	case err == nil && (resp.Body == nil || resp.Header == nil || resp.Request == nil || resp.ProtoMajor == 0 || resp.StatusCode < 200):
		t.errorf("the response lacks what an http.Client or a proxy relies on: %+v", resp)
	}
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
}

func bodyClosedWhenRefused(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	rt, u := t.refusing(wrap)
	body := watch("body")
	if u.call(rt, t.request(http.MethodPost, "http://upstream.test/", body)) {
		t.skipf("it refuses some calls and lets others pass")
	}
	t.eventually(body.isClosed, "the request body to be closed")
}

func probeOutlivesCancel(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	rt, u := t.refusing(wrap)
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	u.set(func(req *http.Request) (*http.Response, error) {
		cancel()
		<-req.Context().Done()
		return nil, req.Context().Err()
	})
	t.probed(rt, u, ctx)
	t.recovers(rt, u)
}

func probeOutlivesPanic(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	rt, u := t.refusing(wrap)
	u.set(func(*http.Request) (*http.Response, error) { panic(http.ErrAbortHandler) })
	t.probed(rt, u, t.ctx)
	t.recovers(rt, u)
}

// probed makes calls with ctx until one arrives, which is the probe.
func (t *trial) probed(rt http.RoundTripper, u *upstream, ctx context.Context) {
	var arrived atomic.Bool
	t.eventually(func() bool {
		t.apart(func() {
			before := u.calls.Load()
			defer func() { arrived.Store(u.calls.Load() > before) }()
			u.call(rt, t.get().WithContext(ctx))
		})
		return arrived.Load()
	}, "a probe to be let through")
}

// recovers waits until a call is answered by an upstream that is well again.
func (t *trial) recovers(rt http.RoundTripper, u *upstream) {
	u.set(answers(200))
	t.eventually(func() bool { return u.call(rt, t.get()) }, "any call to be let through after that, with the upstream well again")
}
