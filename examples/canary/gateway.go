package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/canary"
)

// userHeader has the id of the user. A real gateway takes it from whoever has
// authenticated him, and not from the request as it came.
const userHeader = "X-User-Id"

// A gateway sends each user to his version, and there to one of its instances.
type gateway struct {
	picker    *canary.Picker
	judge     *canary.Judge
	instances map[string]*canary.Upstreams      // by version
	proxies   map[string]*httputil.ReverseProxy // by instance
}

func newGateway(picker *canary.Picker, judge *canary.Judge) *gateway {
	return &gateway{picker: picker, judge: judge, instances: map[string]*canary.Upstreams{}, proxies: map[string]*httputil.ReverseProxy{}}
}

// add makes a version known that runs at some addresses. All are added before the gateway
// serves.
func (g *gateway) add(version string, addresses []string) error {
	upstreams, err := canary.NewUpstreams(version, canary.WithUpstreams(addresses...))
	if err != nil {
		return err
	}
	g.instances[version] = upstreams
	for _, a := range addresses {
		target := &url.URL{Scheme: "http", Host: a}
		g.proxies[a] = &httputil.ReverseProxy{
			Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target) },
			ErrorLog: log.New(silence{}, "", 0), // the judge is told of it
		}
	}
	return nil
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(userHeader)
	d := g.picker.Decide(canary.Input{ID: id})
	d.Version.Enter()
	defer d.Version.Leave()
	begun, seen := time.Now(), &recorder{ResponseWriter: w, status: http.StatusOK}
	w.Header().Set("X-Version", d.Version.Name())
	lease, err := g.instances[d.Version.Name()].Acquire(id)
	if err == nil && lease.Upstream() == nil {
		err = canary.ErrNoUpstream // nobody has added the version
	}
	if err != nil {
		http.Error(seen, err.Error(), http.StatusServiceUnavailable)
		g.judge.ObserveError(r.Context(), d, err, time.Since(begun))
		return
	}
	defer lease.Done()
	whole := false
	defer func() { // also when the proxy panics, since an answer broke off; the panic goes on
		g.judge.Observe(d, seen.outcome(r, whole), time.Since(begun))
	}()
	g.proxies[lease.Upstream().Name()].ServeHTTP(seen, r)
	whole = true
}

// A recorder sees the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if status >= 200 { // what comes before is no answer yet
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController what lies below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// outcome is what the answer, whole or not, says about the version.
func (r *recorder) outcome(request *http.Request, whole bool) sluice.Outcome {
	switch {
	case request.Context().Err() != nil:
		return sluice.Ignored // the user went away
	case r.status == http.StatusTooManyRequests:
		return sluice.Throttled
	case r.status >= 500 || !whole:
		return sluice.Failure
	}
	return sluice.Success
}

// A service is one instance of a version: it fails for every so many users.
type service struct {
	version string
	failFor func(user int) bool
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var user int
	if _, err := fmt.Sscanf(r.Header.Get(userHeader), "user-%d", &user); err != nil {
		http.Error(w, "who are you?", http.StatusBadRequest)
		return
	}
	if s.failFor(user) {
		http.Error(w, s.version+" has broken", http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "hello from %s\n", s.version)
}

// silence is where nothing is written.
type silence struct{}

func (silence) Write(b []byte) (int, error) { return len(b), nil }
