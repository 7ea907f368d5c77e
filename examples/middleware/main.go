// The middleware example guards the routes of a server, one of which has lost its
// database: it is refused after five failures, and the others do not notice.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/httpguard"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "user ", r.PathValue("id")) })
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		httpguard.Fail(w, errors.New("no database")) // what it means, whatever the status says
		fmt.Fprint(w, "the orders of yesterday")
	})

	routes := sluice.Must(breaker.NewGroup("route", breaker.WithConsecutiveFailures(5)))
	guard := sluice.Must(httpguard.Middleware(
		httpguard.WithBreakers(routes, httpguard.ByRoute(mux)), // a breaker for each pattern
		httpguard.WithMaxInFlight(100),                         // for all of them together
		httpguard.WithExempt("GET /healthz"),
	))
	server := httptest.NewServer(guard(mux))
	defer server.Close()

	get := func(path string) {
		resp := sluice.Must(http.Get(server.URL + path))
		defer resp.Body.Close()
		body := bytes.TrimSpace(sluice.Must(io.ReadAll(resp.Body)))
		fmt.Printf("%-10s %d %s\n", path, resp.StatusCode, body)
	}
	for id := range 7 {
		get(fmt.Sprint("/orders/", id))
	}
	get("/users/1")
	get("/healthz")
	for pattern, b := range routes.All() {
		if b.State() == breaker.Open {
			fmt.Println(pattern, "is open:", b.Snapshot().Reason)
		}
	}
}
