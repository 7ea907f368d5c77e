package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/breaker"
)

// inMemory is a transport that hands requests to a handler, and gives up with them.
type inMemory struct{ http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// route is the gateway's route to a backend, and the breaker that guards it.
func route(t *testing.T, b *backend, protected bool) (http.Handler, *breaker.Breaker) {
	t.Helper()
	p, err := newPlan(fullLength)
	require.NoError(t, err)
	u := upstream{name: b.name, prefix: "/api/order", url: &url.URL{Scheme: "http", Host: "order.test"}}
	if protected {
		u.breaker, err = newBreaker(u.name, p, func(breaker.Event) {})
		require.NoError(t, err)
	}
	h, err := u.proxy(inMemory{b}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return h, u.breaker
}

func get(t *testing.T, h http.Handler, path string) (resp *http.Response, body string, took time.Duration) {
	start := time.Now()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	text, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return w.Result(), string(text), time.Since(start)
}

func TestBreaker_IsTheOneOfTheDemonstration(t *testing.T) {
	_, guard := route(t, &backend{name: "order-service"}, true)
	c := guard.Config()
	assert.Equal(t, "order-service", guard.Name())
	assert.Equal(t, []breaker.Rule{
		{Kind: breaker.SlowCallRatio, SlowerThan: 500 * time.Millisecond, Ratio: 0.5},
		{Kind: breaker.ErrorRatio, Ratio: 0.5},
	}, c.Rules)
	assert.Equal(t, 5*time.Second, c.Window)
	assert.Equal(t, 2*time.Second, c.OpenFor)
	assert.Equal(t, []int{1, 5, 20}, c.Probes)
}

func TestProxy_ForwardsWithoutThePrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := route(t, &backend{name: "order-service"}, true)
		resp, body, took := get(t, h, "/api/order/list/7")
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		assert.Equal(t, `{"service":"order-service","path":"/list/7"}`+"\n", body)
		assert.InDelta(t, 0.1, took.Seconds(), 0.02)
	})
}

func TestProxy_TimeoutIs504AndAnOpenBreaker503(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{name: "order-service"}
		b.sick.Store(true)
		h, guard := route(t, b, true)
		for range breaker.DefaultConfig().MinRequests {
			go func() {
				resp, _, took := get(t, h, "/api/order/1")
				assert.Equal(t, http.StatusGatewayTimeout, resp.StatusCode)
				assert.Equal(t, attemptTimeout, took)
			}()
		}
		time.Sleep(2 * time.Second)
		require.Equal(t, breaker.Open, guard.State())
		resp, _, took := get(t, h, "/api/order/1")
		assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		assert.NotEmpty(t, resp.Header.Get("Retry-After"))
		assert.Zero(t, took)
		assert.EqualValues(t, breaker.DefaultConfig().MinRequests, b.hung.Load())
	})
}

func TestProxy_WithoutBreakerWaitsForTheHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{name: "order-service"}
		b.sick.Store(true)
		h, _ := route(t, b, false)
		resp, _, took := get(t, h, "/api/order/1")
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		assert.Equal(t, hangTime, took)
	})
}
