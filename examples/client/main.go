// The client example puts a breaker and an attempt timeout around an http.Client, and
// lets the shop that it calls hang for a while.
package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/httpguard"
)

func main() {
	var hangs atomic.Bool
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			<-r.Context().Done()
		}
	}))
	defer shop.Close()

	guard := sluice.Must(breaker.New("shop",
		breaker.WithConsecutiveFailures(3), breaker.WithOpenFor(2*time.Second), breaker.WithJitter(0)))
	client := http.Client{Transport: sluice.Must(httpguard.NewTransport(nil,
		httpguard.WithBreaker(guard), httpguard.WithAttemptTimeout(500*time.Millisecond)))}
	buy := func() {
		resp, err := client.Get(shop.URL)
		var refusal sluice.Rejection
		switch {
		case errors.As(err, &refusal):
			fmt.Println("not even asked:", refusal)
		case errors.Is(err, sluice.ErrTimeout):
			fmt.Println("gave up after 500ms")
		default:
			resp.Body.Close()
			fmt.Println(resp.Status)
		}
	}

	buy()
	hangs.Store(true)
	for range 5 {
		buy()
	}
	hangs.Store(false)
	time.Sleep(2 * time.Second) // the next call finds out that the shop is well
	buy()
	fmt.Println("the breaker is", guard.State())
}
