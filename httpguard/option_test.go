package httpguard

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNewTransport_SaysAllThatIsWrongAtOnce(t *testing.T) {
	_, err := NewTransport(nil,
		WithName(""),
		WithBreakers(newGroup(t), nil),
		WithBreaker(newBreaker(t)),
		WithAttemptTimeout(-time.Second),
		WithFallback(nil, OnTimeout, 0, 9),
		WithFallbackLimit(0),
		WithTotalTimeout(0),
		WithBodyIdleTimeout(-1),
		WithFinishAt(3),
		WithStreaming(nil),
	)
	assert.EqualError(t, err, `httpguard: WithName: the name is empty
httpguard: WithBreakers: the key is nil
httpguard: WithBreaker and WithBreakers are both given: a request has one breaker
httpguard: WithAttemptTimeout: -1s is not positive
httpguard: WithTotalTimeout: 0s is not positive
httpguard: WithBodyIdleTimeout: -1ns is not positive
httpguard: WithFinishAt: 3 is neither headers nor body
httpguard: WithStreaming: the function is nil
httpguard: WithFallback: the function is nil
httpguard: WithFallback: cause 0 is not one of [rejected timeout failure error]
httpguard: WithFallback: cause 9 is not one of [rejected timeout failure error]
httpguard: WithFallbackLimit: 0 is not positive`)

	_, err = NewTransport(nil, WithBreakers(newGroup(t), KeyFunc(nil)))
	assert.EqualError(t, err, "httpguard: WithBreakers: the key is nil")
	_, err = NewTransport(nil, WithAttemptTimeout(0))
	assert.EqualError(t, err, "httpguard: WithAttemptTimeout: 0s is not positive", "zero is not taken for none")
	_, err = NewTransport(nil, WithTotalTimeout(time.Second), WithAttemptTimeout(time.Minute))
	assert.EqualError(t, err, "httpguard: WithAttemptTimeout: 1m0s is longer than the 1s of WithTotalTimeout")
	_, err = NewTransport(nil, WithBodyIdleTimeout(time.Minute), WithTotalTimeout(time.Second))
	assert.EqualError(t, err, "httpguard: WithBodyIdleTimeout: 1m0s is longer than the 1s of WithTotalTimeout")
	_, err = NewTransport(nil, WithTotalTimeout(time.Second), WithAttemptTimeout(time.Second), WithBodyIdleTimeout(time.Second))
	assert.NoError(t, err)
	_, err = NewTransport(nil, WithBreakers(newGroup(t), ByRoute(nil)))
	assert.EqualError(t, err, "httpguard: WithBreakers: the mux of ByRoute is nil")
}

func TestOption_ForTheOtherSideIsAnErrorThatNamesIt(t *testing.T) {
	_, err := apply(middlewareSide, []Option{WithAttemptTimeout(time.Second), WithName("x"), WithFallbackLimit(0)})
	assert.EqualError(t, err, `httpguard: WithAttemptTimeout has no meaning for a Middleware
httpguard: WithFallbackLimit has no meaning for a Middleware`)

	mine := Option{"WithMine", middlewareSide, func(*settings) { t.Error("set") }}
	_, err = NewTransport(nil, mine, WithName(""))
	assert.EqualError(t, err, "httpguard: WithMine has no meaning for a Transport\nhttpguard: WithName: the name is empty")

	_, err = NewTransport(nil, Option{})
	assert.NoError(t, err, "the zero Option sets nothing")
}

func TestNewTransport_LastOptionWins(t *testing.T) {
	first, second := newBreaker(t), newBreaker(t)
	tr := newTransport(t, nil, WithAttemptTimeout(-1), WithBreaker(first), WithAttemptTimeout(time.Second), WithBreaker(second))
	assert.Same(t, second, tr.settings.breaker)
	assert.Equal(t, time.Second, tr.limits.headers.after)
}

func TestNewTransport_WithoutAnything(t *testing.T) {
	tr := newTransport(t, nil)
	assert.Equal(t, http.DefaultTransport, tr.Unwrap())
	assert.Equal(t, Snapshot{Name: "http"}, tr.Snapshot())

	base := answering(204, "")
	for _, opts := range [][]Option{nil, {WithBreaker(nil)}, {WithBreakers(nil, ByHost)}} {
		resp, err := newTransport(t, base, opts...).RoundTrip(get(t.Context()))
		require.NoError(t, err, "nil lets everything pass")
		assert.Equal(t, 204, resp.StatusCode)
	}
	_, err := tr.RoundTrip(&http.Request{})
	assert.Error(t, err, "and the base has its own word on a request without a URL")
}
