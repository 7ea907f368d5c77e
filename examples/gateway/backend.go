package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"
)

const answerJitter = 20 * time.Millisecond

// A backend is a service behind the gateway: an HTTP server that answers in about
// 100 ms, or, while it is sick, in 10 s. It is safe for concurrent use.
type backend struct {
	name string
	sick atomic.Bool  // set by the act
	hung atomic.Int64 // requests that came while it was sick; ServeHTTP adds
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	took := answerTime - answerJitter + rand.N(2*answerJitter)
	if b.sick.Load() {
		b.hung.Add(1)
		took = hangTime // also if the backend recovers meanwhile
	}
	select {
	case <-time.After(took):
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"service":%q,"path":%q}`+"\n", b.name, r.URL.Path)
	case <-r.Context().Done(): // nobody waits for the answer any more
	}
}
