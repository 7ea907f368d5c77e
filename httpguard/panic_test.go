package httpguard

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// The stack of a panic, and http.ErrAbortHandler, are worth more than a recover. The
// permit is settled all the same: failsafe-go's half-open probe that panicked was
// out for ever.
func TestC21_PanicAndGoexitInBaseSettleThePermit(t *testing.T) {
	ends := map[string]func(){
		"panic":  func() { panic(http.ErrAbortHandler) },
		"goexit": runtime.Goexit,
	}
	for name, end := range ends {
		for _, limit := range []time.Duration{0, time.Hour} {
			t.Run(name+" "+limit.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var sent context.Context
					base := baseFunc(func(req *http.Request) (*http.Response, error) {
						sent = req.Context()
						end()
						return nil, nil
					})
					b := openBreaker(t, time.Second)
					opts := []Option{WithBreaker(b)}
					if limit > 0 {
						opts = append(opts, WithAttemptTimeout(limit))
					}
					tr := newTransport(t, base, opts...)
					time.Sleep(time.Second)

					ended := make(chan any)
					go func() {
						defer close(ended)
						defer func() {
							if p := recover(); p != nil {
								ended <- p
							}
						}()
						_, _ = tr.RoundTrip(get(t.Context()))
					}()
					if name == "panic" {
						assert.Equal(t, any(http.ErrAbortHandler), <-ended, "the panic goes on as it was")
					}
					<-ended
					assert.True(t, sluice.IsProbe(sent))
					assert.Equal(t, breaker.Open, b.State(), "a probe that did not complete is a bad one")
					assert.EqualValues(t, 0, b.Snapshot().Probe.Issued)
					if limit > 0 {
						assert.ErrorIs(t, sent.Err(), context.Canceled, "what was derived is released")
					}
				})
			})
		}
	}
}

// Hooks are foreign code as well, and by then there is a response that nobody else
// would close.
func TestC21_PanicInHookClosesTheResponse(t *testing.T) {
	var given *http.Response
	base := baseFunc(func(req *http.Request) (*http.Response, error) {
		given = response(req, 503, "body")
		return given, nil
	})
	b := newBreaker(t)
	declining := WithFallback(func(_ *http.Request, err error) (*http.Response, error) { return nil, err })
	broken := WithLogger(slog.New(brokenHandler{}))
	for name, opt := range map[string]Option{
		"classifier": WithClassifier(func(*http.Request, *http.Response, error) sluice.Outcome { panic("hook") }),
		"fallback":   WithFallback(func(*http.Request, error) (*http.Response, error) { panic("hook") }),
		"logger":     {set: func(s *settings) { declining.set(s); broken.set(s) }, sides: transportSide},
	} {
		before := b.Snapshot().Totals.Failure
		tr := newTransport(t, base, WithBreaker(b), opt)
		var held *watchedBody
		assert.PanicsWithValue(t, "hook", func() {
			defer func() { held = heldBy(given.Body) }()
			_, _ = tr.RoundTrip(get(t.Context()))
		}, name)
		assert.EqualValues(t, 1, held.closes.Load(), name)
		assert.Equal(t, before+1, b.Snapshot().Totals.Failure, name)
	}
	own := newBreaker(t, breaker.WithClassifier(func(context.Context, error) breaker.Verdict { panic("hook") }))
	tr := newTransport(t, base, WithBreaker(own))
	assert.PanicsWithValue(t, "hook", func() { _, _ = tr.RoundTrip(get(t.Context())) })
	assert.EqualValues(t, 1, heldBy(given.Body).closes.Load())
	assert.EqualValues(t, 1, own.Snapshot().Totals.Failure)
}

// heldBy returns the base's own body, wrapped or not.
func heldBy(body io.ReadCloser) *watchedBody {
	if held, ok := body.(*heldBody); ok {
		body = held.ReadCloser
	}
	return body.(*watchedBody)
}
