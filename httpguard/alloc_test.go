package httpguard

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/breaker"
)

// Ours is what a call costs above its base. A request passes unchanged, a refusal is
// an error that exists already, and a known host is found without building its name.
func TestAllocs_NoneOnPassAndNoneOnRefuse(t *testing.T) {
	ready := response(nil, 200, "")
	base := baseFunc(func(*http.Request) (*http.Response, error) { return ready, nil })
	rules := []breaker.Option{
		breaker.WithSlowCallRatio(time.Second, 0.5), breaker.WithErrorRatio(0.5), breaker.WithErrorCount(1000),
		breaker.WithWindow(time.Hour, 10), // no bucket is renewed meanwhile
	}
	closed, group := newBreaker(t, rules...), newGroup(t, rules...)
	open, opened := openBreaker(t, time.Hour), newGroup(t)
	require.NoError(t, opened.Get("http://upstream.test:80").Trip(time.Hour))
	byHeader := KeyFunc(func(r *http.Request) string { return r.Host })
	serve := WithFallback(func(*http.Request, error) (*http.Response, error) { return ready, nil }, OnRejected)

	for name, c := range map[string]struct {
		opts    []Option
		refused bool
	}{
		"nothing":                          {nil, false},
		"one breaker":                      {[]Option{WithBreaker(closed)}, false},
		"by host":                          {[]Option{WithBreakers(group, ByHost)}, false},
		"by function":                      {[]Option{WithBreakers(group, byHeader)}, false},
		"by host, with a fallback":         {[]Option{WithBreakers(group, ByHost), serve}, false},
		"one breaker, refused":             {[]Option{WithBreaker(open)}, true},
		"by host, refused":                 {[]Option{WithBreakers(opened, ByHost)}, true},
		"by host, with a limit, refused":   {[]Option{WithBreakers(opened, ByHost), WithAttemptTimeout(time.Hour)}, true},
		"by host, with a fallback, served": {[]Option{WithBreakers(opened, ByHost), serve}, false},
	} {
		tr := newTransport(t, base, c.opts...)
		req := get(t.Context())
		assert.Zero(t, testing.AllocsPerRun(1000, func() {
			if _, err := tr.RoundTrip(req); (err != nil) != c.refused {
				t.Error(name, err)
			}
		}), name)
	}
}

// A call that waits for its body costs the body that waits, and nothing else: what is
// to be found by the garbage collector is used again. Under the race detector pools
// lose some of what they are given, on purpose, so there the bound is looser.
func TestAllocs_OneToWaitForTheBody(t *testing.T) {
	inner := &watchedBody{Reader: strings.NewReader("")}
	ready := response(nil, 200, "")
	base := baseFunc(func(*http.Request) (*http.Response, error) {
		ready.Body = inner
		return ready, nil
	})
	tr := newTransport(t, base, WithBreaker(neverTrips(t)), WithFinishAt(Body))
	req := get(t.Context())
	most := 1.0
	if poolsLose() {
		most = 3
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Error(err)
		}
		_ = resp.Body.Close()
	}), most)
}

// poolsLose reports whether this is the race detector's sync.Pool.
func poolsLose() bool {
	var pool sync.Pool
	for range 100 {
		if pool.Put(new(int)); pool.Get() == nil {
			return true
		}
	}
	return false
}
