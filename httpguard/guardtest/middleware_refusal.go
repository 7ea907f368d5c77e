package guardtest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// refusesRequestsAfter reports whether a request is refused after many that were
// served so.
func (t *trial) refusesRequestsAfter(h *handler, inner http.Handler, does http.HandlerFunc) bool {
	h.set(does)
	for range many + 1 {
		if _, arrived := t.requestTo(h, inner, t.arrival(http.MethodGet, nil)); !arrived {
			return true
		}
	}
	return false
}

// refusingRequests is a wrapper that refuses requests, because its handler fails.
// Some only look at panics.
func (t *trial) refusingRequests(wrap func(http.Handler) http.Handler) (*handler, http.Handler) {
	for _, does := range []http.HandlerFunc{
		status(http.StatusInternalServerError),
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		h := &handler{}
		inner := h.mounted(wrap)
		if t.refusesRequestsAfter(h, inner, does) {
			return h, inner
		}
	}
	t.skipf("after %d requests that failed, it refuses none", many)
	return nil, nil
}

func failingHandlerTrips(t *trial, wrap func(http.Handler) http.Handler) {
	t.refusingRequests(wrap)
	h := &handler{}
	if !t.refusesRequestsAfter(h, h.mounted(wrap), status(http.StatusInternalServerError)) {
		t.errorf("panics make it refuse, but %d answers with 500 do not", many)
	}
}

func notFoundAnswersDoNotTrip(t *trial, wrap func(http.Handler) http.Handler) {
	h := &handler{}
	if t.refusesRequestsAfter(h, h.mounted(wrap), status(http.StatusNotFound)) {
		t.errorf("after answers with 404 a request is refused")
	}
}

func goneClientsDoNotTrip(t *trial, wrap func(http.Handler) http.Handler) {
	h := &handler{}
	inner := h.mounted(wrap)
	for i := range many {
		r, leave := t.gone()
		h.set(func(w http.ResponseWriter, _ *http.Request) {
			leave()
			w.WriteHeader(http.StatusBadGateway)
		})
		_, arrived := t.requestTo(h, inner, r)
		leave()
		if !arrived {
			t.fatalf("after %d requests whose client was gone, one is refused", i)
		}
	}
	t.serves(h, inner, fmt.Sprintf("%d requests whose client was gone", many))
}

// refusal is the answer to a request that is refused.
func (t *trial) refusal(wrap func(http.Handler) http.Handler, r *http.Request) *httptest.ResponseRecorder {
	h, inner := t.refusingRequests(wrap)
	answer, arrived := t.requestTo(h, inner, r)
	if arrived {
		t.skipf("it refuses some requests and lets others pass")
	}
	return answer
}

func refusalIs503(t *trial, wrap func(http.Handler) http.Handler) {
	if answer := t.refusal(wrap, t.arrival(http.MethodGet, nil)); answer.Code != http.StatusServiceUnavailable {
		t.errorf("the status is %d", answer.Code)
	}
}

func refusalSaysWhenToRetry(t *trial, wrap func(http.Handler) http.Handler) {
	value := t.refusal(wrap, t.arrival(http.MethodGet, nil)).Header().Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err != nil || seconds < 1 {
		t.errorf("Retry-After is %q", value)
	}
}

func refusalNotStored(t *trial, wrap func(http.Handler) http.Handler) {
	value := t.refusal(wrap, t.arrival(http.MethodGet, nil)).Header().Get("Cache-Control")
	if !strings.Contains(value, "no-store") {
		t.errorf("Cache-Control is %q", value)
	}
}

func refusalTellsNothing(t *trial, wrap func(http.Handler) http.Handler) {
	answer := t.refusal(wrap, t.arrival(http.MethodGet, nil))
	for _, word := range []string{"breaker", "circuit", "/items/", "goroutine"} {
		if body := answer.Body.String(); strings.Contains(strings.ToLower(body), word) {
			t.errorf("the answer is %q", strings.TrimSpace(body))
			return
		}
	}
}

func refusalLeavesBodyUnread(t *trial, wrap func(http.Handler) http.Handler) {
	body := &tripwire{t: t}
	body.Reader = strings.NewReader("body")
	t.refusal(wrap, t.arrival(http.MethodPost, body))
}

func handlerProbeOutlivesPanic(t *trial, wrap func(http.Handler) http.Handler) {
	h, inner := t.refusingRequests(wrap)
	h.set(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	t.requestProbed(h, inner, func() *http.Request { return t.arrival(http.MethodGet, nil) })
	t.handlerRecovers(h, inner)
}

func handlerProbeOutlivesClient(t *trial, wrap func(http.Handler) http.Handler) {
	h, inner := t.refusingRequests(wrap)
	ctx, leave := context.WithCancel(t.ctx)
	defer leave()
	h.set(func(w http.ResponseWriter, _ *http.Request) {
		leave()
		w.WriteHeader(http.StatusBadGateway)
	})
	t.requestProbed(h, inner, func() *http.Request { return t.arrival(http.MethodGet, nil).WithContext(ctx) })
	t.handlerRecovers(h, inner)
}

// requestProbed makes requests until one arrives, which is the probe.
func (t *trial) requestProbed(h *handler, inner http.Handler, next func() *http.Request) {
	t.eventually(func() bool {
		_, arrived := t.requestTo(h, inner, next())
		return arrived
	}, "a probe to be let through")
}

// handlerRecovers waits until a request is served by a handler that is well again.
func (t *trial) handlerRecovers(h *handler, inner http.Handler) {
	h.set(status(http.StatusOK))
	t.eventually(func() bool {
		_, arrived := t.requestTo(h, inner, t.arrival(http.MethodGet, nil))
		return arrived
	}, "any request to be let through after that, with the handler well again")
}
