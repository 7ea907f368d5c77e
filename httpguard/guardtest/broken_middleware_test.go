package guardtest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sluicego/sluice/httpguard/guardtest"
)

// The writers of broken wrappers. plain is the one that everybody writes first.
type plain struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (w *plain) WriteHeader(status int) {
	w.status, w.wrote = status, true
	w.ResponseWriter.WriteHeader(status)
}

func (w *plain) Write(p []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(p)
}

// unwrapping is one that http.ResponseController sees through.
type unwrapping struct{ plain }

func (w *unwrapping) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// flushing swallows the errors of flushing.
type flushing struct{ unwrapping }

func (w *flushing) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// boasting has methods whatever there is below.
type boasting struct{ unwrapping }

func (w *boasting) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}
func (w *boasting) Push(string, *http.PushOptions) error { return http.ErrNotSupported }

// careless swallows the errors of writing.
type careless struct{ http.ResponseWriter }

func (w careless) Write(p []byte) (int, error) {
	_, _ = w.ResponseWriter.Write(p)
	return len(p), nil
}

// onceOnly lets one WriteHeader through, which may be that of an early hint.
type onceOnly struct{ plain }

func (w *onceOnly) WriteHeader(status int) {
	if !w.wrote {
		w.plain.WriteHeader(status)
	}
}

// buffering keeps header, status and body of its own, and sends them at the end.
type buffering struct {
	http.ResponseWriter
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *buffering) Header() http.Header         { return w.header }
func (w *buffering) WriteHeader(status int)      { w.status = status }
func (w *buffering) Write(p []byte) (int, error) { return w.body.Write(p) }

func (w *buffering) send() {
	for name, values := range w.header {
		if name != http.TrailerPrefix+"X-Sum" && name != "X-Sum" {
			w.ResponseWriter.Header()[name] = values
		}
	}
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
	_, _ = w.body.WriteTo(w.ResponseWriter)
}

func buffered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := &buffering{ResponseWriter: w, header: http.Header{}}
		next.ServeHTTP(b, r)
		b.send()
	})
}

// writes is a wrapper that gives the handler another writer.
func writes(change func(http.ResponseWriter) http.ResponseWriter) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(change(w), r) })
	}
}

func asPlain(w http.ResponseWriter) http.ResponseWriter { return &plain{ResponseWriter: w} }

func asUnwrapping(w http.ResponseWriter) http.ResponseWriter {
	return &unwrapping{plain{ResponseWriter: w}}
}

// serves is a wrapper that gives the handler another request.
func serves(change func(r *http.Request) *http.Request) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, change(r)) })
	}
}

func readFirst(r *http.Request) *http.Request {
	body, _ := io.ReadAll(r.Body)
	r = r.WithContext(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return r
}

func copied(r *http.Request) *http.Request { return r.WithContext(r.Context()) }
func cloned(r *http.Request) *http.Request { return r.Clone(r.Context()) }

func recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// naiveGate is naive for handlers.
type naiveGate struct {
	next   http.Handler
	counts func(status int) bool // as a failure; a panic has status 0
	refuse http.HandlerFunc

	mu       sync.Mutex
	failures int
	refused  int
	probing  bool // forgotten when a probe panics, or its client goes away
}

func (n *naiveGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	if n.failures >= 20 {
		n.refused++
		if n.probing || n.refused%3 != 0 {
			n.mu.Unlock()
			n.refuse(w, r)
			return
		}
		n.probing = true
	}
	probe := n.probing
	n.mu.Unlock()
	seen := &plain{ResponseWriter: w, status: 200}
	returned := false
	defer func() {
		if !returned && !probe && n.counts(0) {
			n.failures++
		}
	}()
	n.next.ServeHTTP(seen, r)
	returned = true
	if probe && errors.Is(r.Context().Err(), context.Canceled) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.probing = false
	if n.counts(seen.status) {
		n.failures++
	} else {
		n.failures = 0
	}
}

func newNaiveGate(counts func(int) bool, refuse http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler { return &naiveGate{next: next, counts: counts, refuse: refuse} }
}

func anyFailing(status int) bool { return status == 0 || status >= 500 }

func unavailable(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusServiceUnavailable)
}

// A naive gate whose refusals are right breaks no rule of theirs: what the broken ones
// below are caught for is what they do wrong.
func TestMiddlewareChecks_RightRefusalsPass(t *testing.T) {
	t.Parallel()
	for _, c := range guardtest.MiddlewareChecks() {
		switch c.Name {
		case "RefusalIs503", "RefusalSaysWhenToRetry", "RefusalNotStored", "RefusalTellsNothing", "RefusalLeavesBodyUnread", "FailingHandlerTrips", "NotFoundAnswersDoNotTrip":
			if err := c.Run(t.Context(), newNaiveGate(anyFailing, unavailable)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestMiddlewareChecks_EachCatchesItsBrokenWrapper(t *testing.T) {
	t.Parallel()
	type handler = http.Handler
	plainly := writes(asPlain)
	refusing := func(refuse http.HandlerFunc) func(handler) handler { return newNaiveGate(anyFailing, refuse) }
	eachIsCaught(t, guardtest.MiddlewareChecks(), []broken[handler]{
		{"WriterHidesNothing", "the writer is no http.Flusher", writes(asUnwrapping)},
		{"WriterFakesNothing", "and the server's is not", writes(func(w http.ResponseWriter) http.ResponseWriter {
			return &boasting{unwrapping{plain{ResponseWriter: w}}}
		})},
		{"ControllerWorks", "SetReadDeadline says feature not supported", plainly},
		{"ControllerWorksThroughUnwrap", "SetReadDeadline says feature not supported", func(next handler) handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, ok := w.(http.Flusher); !ok {
					w = &plain{ResponseWriter: w}
				}
				next.ServeHTTP(w, r)
			})
		}},
		{"HijackWorks", "hijacking by http.Hijacker fails", writes(asUnwrapping)},
		{"FlushErrorArrives", "Flush of the controller says <nil>", writes(func(w http.ResponseWriter) http.ResponseWriter {
			return &flushing{unwrapping{plain{ResponseWriter: w}}}
		})},
		{"WriteErrorArrives", "says 4, <nil>", writes(func(w http.ResponseWriter) http.ResponseWriter { return careless{w} })},
		{"ReadFromArrives", "ReadFrom was called 0 times", writes(asUnwrapping)},
		{"HeaderShared", "what was set outside is not seen", buffered},
		{"AnswerUntouched", `arrive as 200 and "answer and moretimeout exceeded"`, func(next handler) handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				_, _ = io.WriteString(w, "timeout exceeded")
			})
		}},
		{"EmptyAnswerIs200", "nothing arrives as 404", func(next handler) handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen := &plain{ResponseWriter: w}
				if next.ServeHTTP(seen, r); !seen.wrote {
					w.WriteHeader(http.StatusNotFound)
				}
			})
		}},
		{"FirstStatusWins", "the status is 500", buffered},
		{"EarlyHintsArrive", "arrive as", writes(func(w http.ResponseWriter) http.ResponseWriter {
			return &onceOnly{plain{ResponseWriter: w}}
		})},
		{"HandlerTrailersArrive", "the trailer is", buffered},
		{"HandlerEventsArriveAtOnce", "an event", func(next handler) handler {
			return http.TimeoutHandler(next, time.Hour, "")
		}},
		{"OuterRequestUntouched", "Header is now", serves(func(r *http.Request) *http.Request {
			r.Header.Set("X-Request-Id", "1")
			return r
		})},
		{"PatternSeenInside", `the pattern is ""`, serves(func(r *http.Request) *http.Request {
			r = cloned(r)
			r.Pattern = ""
			return r
		})},
		{"PatternSeenOutside", `the pattern is ""`, serves(copied)},
		{"ServerContextKept", "the server is not in the context", serves(func(r *http.Request) *http.Request {
			return r.WithContext(context.Background())
		})},
		{"UploadArrivesAtOnce", "waited in vain for the first bytes", serves(readFirst)},
		{"FullDuplexWorks", "hangs", serves(readFirst)},
		{"ExpectContinueLeftToHandler", "the body is read", serves(readFirst)},
		{"TooLargeClosesConnection", "the connection is closed: false", writes(asUnwrapping)},
		{"RequestTrailersArrive", `the trailer is ""`, serves(cloned)},
		{"MultipartFilesRemoved", "waited in vain for the file of the form", serves(copied)},
		{"HandlerPanicPassesOn", "what arrives is the panic <nil>", recovering},
		{"HandlerGoexitPassesOn", "ServeHTTP returns", func(next handler) handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					next.ServeHTTP(w, r)
				}()
				<-ended
			})
		}},
		{"AbortAborts", "answered with 500", recovering},
		{"ClientGoneEndsContext", "waited in vain for the handler", serves(func(r *http.Request) *http.Request {
			return r.WithContext(context.WithoutCancel(r.Context()))
		})},
		{"PanicsLeakNothing", "after 10 panics", func(next handler) handler {
			slots := make(chan struct{}, 10)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				select {
				case slots <- struct{}{}:
					next.ServeHTTP(w, r)
					<-slots
				default:
					unavailable(w, r)
				}
			})
		}},
		{"HandlerSafeForConcurrentUse", "waited in vain for the other requests", func(next handler) handler {
			var mu sync.Mutex
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				next.ServeHTTP(w, r)
			})
		}},
		{"FailingHandlerTrips", "answers with 500 do not", newNaiveGate(func(status int) bool { return status == 0 }, unavailable)},
		{"NotFoundAnswersDoNotTrip", "after answers with 404", newNaiveGate(func(status int) bool { return status == 0 || status >= 400 }, unavailable)},
		{"GoneClientsDoNotTrip", "after 20 requests whose client was gone", refusing(unavailable)},
		{"RefusalIs503", "the status is 429", refusing(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })},
		{"RefusalSaysWhenToRetry", `Retry-After is "0"`, refusing(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", fmt.Sprintf("%.0f", 0.3)) })},
		{"RefusalNotStored", `Cache-Control is ""`, refusing(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })},
		{"RefusalTellsNothing", "the answer is", refusing(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "circuit breaker open", http.StatusServiceUnavailable)
		})},
		{"RefusalLeavesBodyUnread", "the body is read", refusing(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			unavailable(w, r)
		})},
		{"HandlerProbeOutlivesPanic", "waited in vain for any request", refusing(unavailable)},
		{"HandlerProbeOutlivesClient", "waited in vain for any request", refusing(unavailable)},
	})
}
