package guardtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

func errorPassesOn(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	broken := errors.New("broken")
	rt := wrap(base(func(req *http.Request) (*http.Response, error) {
		consume(req)
		return nil, broken
	}))
	if err := t.mustFail(rt, t.get()); !errors.Is(err, broken) {
		t.errorf("the error is %v, which does not match that of the base", err)
	}
}

func panicPassesOn(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	_, panicked := t.endsInBase(wrap, func() { panic(http.ErrAbortHandler) })
	if panicked != http.ErrAbortHandler {
		t.errorf("what arrives is the panic %v, not http.ErrAbortHandler", panicked)
	}
}

func goexitPassesOn(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	_, panicked := t.endsInBase(wrap, runtime.Goexit)
	if panicked != nil {
		t.errorf("what arrives is the panic %v", panicked)
	}
}

// endsInBase makes a call whose base does not return but ends so, and a good one.
func (t *trial) endsInBase(wrap func(http.RoundTripper) http.RoundTripper, end func()) (returned bool, panicked any) {
	ends := true
	rt := wrap(base(func(req *http.Request) (*http.Response, error) {
		consume(req)
		if ends {
			end()
		}
		return respond(req, 200, http.NoBody), nil
	}))
	returned, panicked = t.apart(func() {
		if resp, err := rt.RoundTrip(t.get()); err == nil {
			_ = resp.Body.Close()
		}
	})
	if returned {
		t.errorf("the call returns as if nothing had been")
	}
	ends = false
	t.read(t.send(rt, t.get()))
	return returned, panicked
}

func safeForConcurrentUse(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s", r.URL.Path, body)
	}))
	t.manyCalls(wrap(s.base), s.url, 8)
}

// manyCalls makes calls from several clients at once, each of which has to be
// answered with its path and body. The path of a client's first one ends in 0.
func (t *trial) manyCalls(rt http.RoundTripper, url string, clients int) {
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for i := range 20 {
				path, body := fmt.Sprintf("/%d/%d", client, i), fmt.Sprintf("%d", client*i)
				req, err := http.NewRequestWithContext(t.ctx, http.MethodPost, url+path, strings.NewReader(body))
				if err != nil {
					t.errorf("%v", err)
					return
				}
				resp, err := rt.RoundTrip(req)
				if err != nil {
					t.errorf("%s fails: %v", path, err)
					return
				}
				got, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if want := path + " " + body; string(got) != want || err != nil {
					t.errorf("%s gets %q, %v, not %q", path, got, err, want)
				}
			}
		})
	}
	all.Wait()
}

// many is how many calls may have to go one way before a breaker has seen enough.
const many = 100

// upstream is a base of which a check says what it does.
type upstream struct {
	calls atomic.Int64                                                // that arrived
	does  atomic.Pointer[func(*http.Request) (*http.Response, error)] // with one call
}

func (u *upstream) set(does func(*http.Request) (*http.Response, error)) { u.does.Store(&does) }

func (u *upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	u.calls.Add(1)
	defer consume(req)
	return (*u.does.Load())(req)
}

var errDown = errors.New("connection refused, as it were")

func down(*http.Request) (*http.Response, error) { return nil, errDown }

func answers(status int) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) { return respond(req, status, watch("answer")), nil }
}

// call makes a call whose end makes no difference, and reports whether it arrived.
func (u *upstream) call(rt http.RoundTripper, req *http.Request) (arrived bool) {
	before := u.calls.Load()
	if resp, err := rt.RoundTrip(req); err == nil {
		_ = resp.Body.Close()
	}
	return u.calls.Load() > before
}

// refusesAfter reports whether a call is refused after many that ended so.
func (t *trial) refusesAfter(rt http.RoundTripper, u *upstream, does func(*http.Request) (*http.Response, error)) bool {
	u.set(does)
	for range many {
		if !u.call(rt, t.get()) {
			return true
		}
	}
	return !u.call(rt, t.get())
}

// refusing is a wrapper that refuses calls, because its upstream fails.
func (t *trial) refusing(wrap func(http.RoundTripper) http.RoundTripper) (http.RoundTripper, *upstream) {
	u := &upstream{}
	rt := wrap(u)
	if !t.refusesAfter(rt, u, down) {
		t.skipf("after %d calls that failed, it refuses none", many)
	}
	return rt, u
}

func failingStatusesTrip(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	t.refusing(wrap)
	u := &upstream{}
	if !t.refusesAfter(wrap(u), u, answers(500)) {
		t.errorf("calls that fail make it refuse, but %d answers with 500 do not", many)
	}
}

func notFoundsDoNotTrip(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	u := &upstream{}
	if t.refusesAfter(wrap(u), u, answers(404)) {
		t.errorf("after answers with 404 a call is refused")
	}
}

func cancelsDoNotTrip(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	u := &upstream{}
	rt := wrap(u)
	u.set(func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	})
	for i := range many {
		ctx, cancel := context.WithCancel(t.ctx)
		before := u.calls.Load()
		go func() { // once it has arrived
			t.eventually(func() bool { return u.calls.Load() > before || ctx.Err() != nil }, "the call to arrive")
			cancel()
		}()
		arrived := u.call(rt, t.get().WithContext(ctx))
		cancel()
		if !arrived {
			t.fatalf("after %d calls that were cancelled, one is refused", i)
		}
	}
	u.set(answers(200))
	t.read(t.send(rt, t.get()))
}

func brokenUploadsDoNotTrip(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	inner, ended := t.proxy(s, wrap), make(chan struct{}, 1)
	proxy := t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		inner.ServeHTTP(w, r)
	}))
	good := func() int {
		resp := t.send(proxy.base, t.request(http.MethodGet, proxy.url, nil))
		t.read(resp)
		t.await(ended, "the reverse proxy to be done with a call")
		return resp.StatusCode
	}
	if status := good(); status != 200 {
		t.skipf("a reverse proxy with it answers with %d from the first", status)
	}
	// In rounds, so that one of them ends while a breaker that has tripped is still open.
	for round := range 4 {
		for range many / 5 {
			t.breakUpload(proxy)
			t.await(ended, "the reverse proxy to be done with a broken upload")
		}
		if status := good(); status != 200 {
			t.fatalf("after %d broken uploads the next call is answered with %d", (round+1)*many/5, status)
		}
	}
}

// breakUpload begins an upload that fails in the middle.
func (t *trial) breakUpload(s *site) {
	body, client := io.Pipe()
	go func() {
		_, _ = client.Write(make([]byte, 1000))
		_ = client.CloseWithError(errDown)
	}()
	req := t.request(http.MethodPost, s.url, body)
	req.ContentLength = 1 << 20
	if resp, err := s.base.RoundTrip(req); err == nil { // with the 502 of a proxy
		_ = resp.Body.Close()
	}
}
