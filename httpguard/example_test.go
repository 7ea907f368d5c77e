package httpguard_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/httpguard"
)

// A client whose upstreams each have a breaker: after enough failures calls are
// refused at once, and the upstream is left alone.
func ExampleNewTransport() {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer upstream.Close()

	breakers := sluice.Must(breaker.NewGroup("upstream", breaker.WithConsecutiveFailures(3)))
	client := &http.Client{Transport: sluice.Must(httpguard.NewTransport(nil,
		httpguard.WithBreakers(breakers, httpguard.ByHost),
		httpguard.WithAttemptTimeout(time.Second),
	))}

	for range 4 {
		resp, err := client.Get(upstream.URL)
		if errors.Is(err, breaker.ErrOpen) {
			fmt.Println("refused")
			continue
		}
		fmt.Println(resp.StatusCode)
		resp.Body.Close()
	}
	// Output:
	// 500
	// 500
	// 500
	// refused
}

// A fallback answers when the upstream cannot. To test one, open the breaker.
func ExampleWithFallback() {
	orders := sluice.Must(breaker.New("orders"))
	client := &http.Client{Transport: sluice.Must(httpguard.NewTransport(nil,
		httpguard.WithBreaker(orders),
		httpguard.WithFallback(func(req *http.Request, cause error) (*http.Response, error) {
			if req.Method != http.MethodGet {
				return nil, cause // nothing to offer
			}
			header := http.Header{"Content-Type": {"application/json"}}
			return httpguard.Respond(req, http.StatusOK, header, []byte(`{"orders":[],"stale":true}`)), nil
		}, httpguard.OnRejected, httpguard.OnTimeout),
	))}

	orders.Trip(time.Minute)
	resp, err := client.Get("http://orders.internal/api/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.Status, string(body))
	// Output:
	// 200 OK {"orders":[],"stale":true}
}

// An upstream that says in its own way what went wrong: here an answer with status
// 200 may be a failure.
func ExampleWithClassifier() {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Result", "error")
	}))
	defer upstream.Close()

	legacy := sluice.Must(breaker.New("legacy", breaker.WithConsecutiveFailures(2)))
	client := &http.Client{Transport: sluice.Must(httpguard.NewTransport(nil,
		httpguard.WithBreaker(legacy),
		httpguard.WithClassifier(func(_ *http.Request, resp *http.Response, _ error) sluice.Outcome {
			if resp != nil && resp.Header.Get("X-Result") == "error" {
				return sluice.Failure
			}
			return 0 // no opinion
		}),
	))}

	for range 2 {
		resp, err := client.Get(upstream.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	fmt.Println(legacy.State())
	// Output: open
}

// A gateway: what the guards refuse becomes a 503 that says when to come back.
func ExampleProxyErrorHandler() {
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	target := sluice.Must(url.Parse(upstream.URL))

	orders := sluice.Must(breaker.New("orders"))
	gateway := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:    sluice.Must(httpguard.NewTransport(nil, httpguard.WithBreaker(orders))),
		ErrorHandler: httpguard.ProxyErrorHandler(nil),
	})
	defer gateway.Close()

	orders.Trip(30 * time.Second)
	resp, err := http.Get(gateway.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, "Retry-After:", resp.Header.Get("Retry-After"))
	// Output: 503 Service Unavailable Retry-After: 30
}

// The origin of a URL is the key, whatever its letters and its path.
func ExampleByHost() {
	for _, u := range []string{"https://API.example.com/v1/users?id=7", "http://api.example.com:8080"} {
		req := sluice.Must(http.NewRequest(http.MethodGet, u, nil))
		fmt.Println(httpguard.ByHost.Key(req))
	}
	// Output:
	// https://api.example.com:443
	// http://api.example.com:8080
}

// A download that breaks off half way is a failure of the upstream too, if its
// breaker is asked to wait for the end.
func ExampleWithFinishAt() {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		io.WriteString(w, "the first half")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer upstream.Close()
	b := sluice.Must(breaker.New("downloads", breaker.WithConsecutiveFailures(3)))
	client := &http.Client{Transport: sluice.Must(httpguard.NewTransport(nil,
		httpguard.WithBreaker(b),
		httpguard.WithFinishAt(httpguard.Body),
		httpguard.WithBodyIdleTimeout(10*time.Second),
	))}
	for range 4 {
		resp, err := client.Get(upstream.URL)
		if err != nil {
			fmt.Println("refused:", errors.Is(err, breaker.ErrOpen))
			continue
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		fmt.Println(resp.StatusCode, err)
	}
	// Output:
	// 200 unexpected EOF
	// 200 unexpected EOF
	// 200 unexpected EOF
	// refused: true
}
