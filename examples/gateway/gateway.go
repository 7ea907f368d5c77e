package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/httpguard"
)

// An upstream is a service that the gateway forwards to.
type upstream struct {
	// name is ours: it keys the breaker and stands in events. A host that a client has
	// sent must never do that.
	name   string
	prefix string // requests below it are for this service, which sees them without it
	url    *url.URL
	// breaker guards this service alone, so that no other pays for it; nil is no
	// protection at all.
	breaker *breaker.Breaker
}

// newBreaker returns a breaker that trips when half of the calls of the window are
// slow or have failed. Whether the service is back it finds out with one request,
// then five, then twenty; while it is not, each open period is twice the last.
func newBreaker(name string, p plan, changed func(breaker.Event)) (*breaker.Breaker, error) {
	return breaker.New(name,
		breaker.WithSlowCallRatio(slowLimit, 0.5),
		breaker.WithErrorRatio(0.5),
		breaker.WithWindow(p.window, 10),
		breaker.WithOpenFor(p.openFor),
		breaker.WithBackoff(2, p.openAtMost),
		breaker.WithJitter(p.jitter),
		breaker.WithProbes(p.probes...),
		breaker.WithOnChange(changed),
	)
}

// guard puts the breaker and an attempt timeout in front of base.
func (u upstream) guard(base http.RoundTripper) (http.RoundTripper, error) {
	if u.breaker == nil {
		return base, nil
	}
	return httpguard.NewTransport(base,
		httpguard.WithBreaker(u.breaker),
		httpguard.WithAttemptTimeout(attemptTimeout),
	)
}

// proxy returns a handler that forwards requests to u over base.
func (u upstream) proxy(base http.RoundTripper, logger *slog.Logger) (http.Handler, error) {
	transport, err := u.guard(base)
	if err != nil {
		return nil, err
	}
	return u.forward(transport, logger), nil
}

// forward returns a handler that forwards requests to u over a transport that is
// guarded as it should be.
func (u upstream) forward(transport http.RoundTripper, logger *slog.Logger) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			cutPrefix(r.Out.URL, u.prefix)
			r.SetURL(u.url)
			r.Out.URL.RawQuery = r.In.URL.RawQuery // nothing here reads it, so it may be what it likes
			r.SetXForwarded()
		},
		Transport:      transport,
		ModifyResponse: passable,
		// An open breaker becomes 503 with Retry-After, a timeout 504.
		ErrorHandler: httpguard.ProxyErrorHandler(logger),
		ErrorLog:     slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect || leadsUp(r.URL.Path) {
			http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// passable returns what is wrong with a response that cannot be passed on. A connection
// that has switched protocols ends with its request: the proxy itself forgets one that
// nobody has asked for.
func passable(resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		body := resp.Body // which the proxy takes out
		context.AfterFunc(resp.Request.Context(), func() { body.Close() })
	case resp.StatusCode < 200:
		return fmt.Errorf("the upstream answered with status %03d", resp.StatusCode)
	}
	return nil
}
