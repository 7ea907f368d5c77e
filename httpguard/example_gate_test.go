package httpguard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/httpguard"
	"github.com/sluicego/sluice/metrics"
)

// ask sends one GET through h and prints what comes back.
func ask(h http.Handler, path string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if after := w.Header().Get("Retry-After"); after != "" {
		fmt.Println(path, w.Code, "again in", after)
		return
	}
	fmt.Println(path, w.Code)
}

// Around a mux: each of its routes has a breaker of its own, and all of them together
// have 200 places.
func ExampleMiddleware() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a user") })
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})

	routes := sluice.Must(breaker.NewGroup("routes", breaker.WithConsecutiveFailures(3), breaker.WithOpenFor(30*time.Second), breaker.WithJitter(0)))
	guard := sluice.Must(httpguard.Middleware(
		httpguard.WithExempt("GET /healthz"),
		httpguard.WithMaxInFlight(200),
		httpguard.WithBreakers(routes, httpguard.ByRoute(mux)),
	))
	handler := guard(mux) // for http.ListenAndServe

	for range 4 {
		ask(handler, "/orders/7")
	}
	ask(handler, "/users/7")
	// Output:
	// /orders/7 500
	// /orders/7 500
	// /orders/7 500
	// /orders/7 503 again in 30
	// /users/7 200
}

// Inside a mux, around the handlers that need it. A Gate also tells its numbers.
func ExampleNewGate() {
	routes := sluice.Must(breaker.NewGroup("routes"))
	gate := sluice.Must(httpguard.NewGate(
		httpguard.WithName("front"),
		httpguard.WithBreakers(routes, httpguard.ByPattern),
		httpguard.WithMaxInFlight(200),
	))
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", gate.Wrap(http.NotFoundHandler()))

	ask(mux, "/users/7")
	for key, b := range routes.All() {
		fmt.Println(key, b.State())
	}
	var guards metrics.Set // for an exporter, or a debug page
	guards.Add("front", gate)
	guards.Add("routes", routes)
	fmt.Println(gate.Snapshot().InFlight.Peak, "at most at a time")
	// Output:
	// /users/7 404
	// GET /users/{id} closed
	// 1 at most at a time
}

// A handler that answers although something is broken, and one that is asked for what
// nobody can give.
func ExampleFail() {
	users := sluice.Must(breaker.New("users", breaker.WithConsecutiveFailures(2)))
	guard := sluice.Must(httpguard.Middleware(httpguard.WithBreaker(users)))
	handler := guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/maintenance" {
			httpguard.Ignore(w) // this 503 is meant
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		httpguard.Fail(w, errors.New("database is down"))
		fmt.Fprint(w, "from the cache")
	}))

	for range 3 {
		ask(handler, "/maintenance")
	}
	fmt.Println(users.State())
	ask(handler, "/users/7")
	ask(handler, "/users/7")
	fmt.Println(users.State())
	// Output:
	// /maintenance 503
	// /maintenance 503
	// /maintenance 503
	// closed
	// /users/7 200
	// /users/7 200
	// open
}

// A handler that asks a guard itself answers as a Gate would.
func ExampleRefuse() {
	payments := sluice.Must(breaker.New("payments", breaker.WithJitter(0)))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := payments.Do(r.Context(), func(context.Context) error { return nil })
		if err != nil {
			httpguard.Refuse(w, r, err)
			return
		}
		fmt.Fprint(w, "paid")
	})
	ask(handler, "/pay")
	payments.Trip(20 * time.Second)
	ask(handler, "/pay")
	// Output:
	// /pay 200
	// /pay 503 again in 20
}

// Out of service without hurting anybody.
func ExampleDrain() {
	var drain httpguard.Drain
	guard := sluice.Must(httpguard.Middleware(httpguard.WithDrain(&drain), httpguard.WithExempt("/readyz")))
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if drain.Begun() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	handler := guard(mux)

	ask(handler, "/readyz")
	drain.Begin() // at SIGTERM
	ask(handler, "/readyz")
	ask(handler, "/")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := drain.Wait(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Println("all are out")
	// Output:
	// /readyz 200
	// /readyz 503
	// / 503 again in 1
	// all are out
}
