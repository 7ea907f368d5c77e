package guardtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

func handlerPanicPassesOn(t *trial, wrap func(http.Handler) http.Handler) {
	inner := mount(wrap, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, "half of")
		}
		panic(http.ErrAbortHandler)
	})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		recorder := httptest.NewRecorder()
		_, panicked := t.apart(func() { inner.ServeHTTP(recorder, t.arrival(method, nil)) })
		if panicked != http.ErrAbortHandler {
			t.errorf("what arrives is the panic %v, not http.ErrAbortHandler", panicked)
		}
	}
}

func handlerGoexitPassesOn(t *trial, wrap func(http.Handler) http.Handler) {
	h := &handler{}
	inner := h.mounted(wrap)
	h.set(func(http.ResponseWriter, *http.Request) { runtime.Goexit() })
	returned, panicked := t.apart(func() { inner.ServeHTTP(httptest.NewRecorder(), t.arrival(http.MethodGet, nil)) })
	if returned || panicked != nil {
		t.errorf("ServeHTTP returns as if nothing had been, or panics: %v", panicked)
	}
	t.serves(h, inner, "a goroutine that ended")
}

func abortAborts(t *trial, wrap func(http.Handler) http.Handler) {
	s := t.serve(mount(wrap, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "half of")
			flush(w)
		}
		panic(http.ErrAbortHandler)
	}))
	t.mustFail(s.base, t.request(http.MethodPost, s.url+"/headers", nil))
	resp, err := s.base.RoundTrip(t.request(http.MethodPost, s.url+"/body", nil))
	if err != nil {
		return // it broke off before the client had looked at the headers
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.errorf("the body ends as if it were whole, with %q", body)
	}
}

func clientGoneEndsContext(t *trial, wrap func(http.Handler) http.Handler) {
	arrived, gone := make(chan struct{}), make(chan struct{})
	s := t.serve(mount(wrap, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		if t.reached(r.Context().Done(), "the handler's context to end, with the client gone") {
			close(gone)
		}
	}))
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	go func() {
		if t.reached(arrived, "the request to arrive") {
			cancel()
		}
	}()
	t.mustFail(s.base, t.request(http.MethodGet, s.url, nil).WithContext(ctx))
	t.await(gone, "the handler to learn of it")
}

func handlerSafeForConcurrentUse(t *trial, wrap func(http.Handler) http.Handler) {
	const clients = 8
	var there sync.WaitGroup
	there.Add(clients)
	all := make(chan struct{})
	go func() { there.Wait(); close(all) }()
	s := t.serve(mount(wrap, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/0") { // the first of each client
			there.Done()
			if !t.reached(all, "the other requests to be in their handlers at the same time") {
				return
			}
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s", r.URL.Path, body)
	}))
	t.manyCalls(s.base, s.url, clients)
}

// handler is one of which a check says what it does.
type handler struct {
	calls atomic.Int64                     // that arrived
	does  atomic.Pointer[http.HandlerFunc] // with a request
}

func (h *handler) set(does http.HandlerFunc) { h.does.Store(&does) }

func (h *handler) mounted(wrap func(http.Handler) http.Handler) http.Handler {
	return mount(wrap, func(w http.ResponseWriter, r *http.Request) {
		h.calls.Add(1)
		(*h.does.Load())(w, r)
	})
}

// requestTo makes a request, which may panic, and reports whether it arrived.
func (t *trial) requestTo(h *handler, inner http.Handler, r *http.Request) (answer *httptest.ResponseRecorder, arrived bool) {
	answer = httptest.NewRecorder()
	before := h.calls.Load()
	t.apart(func() { inner.ServeHTTP(answer, r) })
	return answer, h.calls.Load() > before
}

// serves makes a good request that has to be served.
func (t *trial) serves(h *handler, inner http.Handler, after string) {
	h.set(func(http.ResponseWriter, *http.Request) {})
	if answer, arrived := t.requestTo(h, inner, t.arrival(http.MethodGet, nil)); !arrived || answer.Code != 200 {
		t.errorf("after %s a request is answered with %d", after, answer.Code)
	}
}

// gone is a request whose client goes away while it is served.
func (t *trial) gone() (r *http.Request, leave context.CancelFunc) {
	ctx, leave := context.WithCancel(t.ctx)
	return httptest.NewRequestWithContext(ctx, http.MethodGet, "/items/7", nil), leave
}

func panicsLeakNothing(t *trial, wrap func(http.Handler) http.Handler) {
	h := &handler{}
	inner := h.mounted(wrap)
	for i := range 10 * many {
		r, leave := t.gone()
		h.set(func(http.ResponseWriter, *http.Request) {
			leave()
			panic(http.ErrAbortHandler)
		})
		_, arrived := t.requestTo(h, inner, r)
		leave()
		if !arrived {
			t.fatalf("after %d panics with the client gone, a request is refused", i)
		}
	}
	t.serves(h, inner, fmt.Sprintf("%d panics with the client gone", 10*many))
}
