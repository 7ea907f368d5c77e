package guardtest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/httpguard"
	"github.com/sluicego/sluice/httpguard/guardtest"
)

// breakers are those of a wrapper that is made for one check.
func breakers(t *testing.T) *breaker.Group {
	g, err := breaker.NewGroup("guarded", breaker.WithOpenFor(5*time.Millisecond), breaker.WithBackoff(1, time.Second), breaker.WithJitter(0))
	require.NoError(t, err)
	return g
}

// Wrapping nothing breaks no rule: the checks ask for nothing else.
func TestTransport_BareBasePasses(t *testing.T) {
	t.Parallel()
	guardtest.TestTransport(t, func(base http.RoundTripper) http.RoundTripper { return base })
}

func TestMiddleware_BareHandlerPasses(t *testing.T) {
	t.Parallel()
	guardtest.TestMiddleware(t, func(next http.Handler) http.Handler { return next })
}

func TestTransport_OursPasses(t *testing.T) {
	t.Parallel()
	timeout := httpguard.WithAttemptTimeout(time.Minute)
	byHost := func(t *testing.T) httpguard.Option { return httpguard.WithBreakers(breakers(t), httpguard.ByHost) }
	for name, options := range map[string]func(t *testing.T) []httpguard.Option{
		"nothing":         func(*testing.T) []httpguard.Option { return nil },
		"breakers":        func(t *testing.T) []httpguard.Option { return []httpguard.Option{byHost(t)} },
		"attempt timeout": func(*testing.T) []httpguard.Option { return []httpguard.Option{timeout} },
		"breakers, attempt timeout": func(t *testing.T) []httpguard.Option {
			return []httpguard.Option{byHost(t), timeout}
		},
		"finish at body": func(t *testing.T) []httpguard.Option {
			return []httpguard.Option{byHost(t), httpguard.WithFinishAt(httpguard.Body)}
		},
		"everything": func(t *testing.T) []httpguard.Option {
			return []httpguard.Option{
				byHost(t), timeout,
				httpguard.WithTotalTimeout(time.Minute),
				httpguard.WithBodyIdleTimeout(time.Minute),
				httpguard.WithFinishAt(httpguard.Body),
				httpguard.WithFallback(func(_ *http.Request, err error) (*http.Response, error) { return nil, err }),
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits more than it works
			guardtest.TestTransport(t, func(base http.RoundTripper) http.RoundTripper {
				tr, err := httpguard.NewTransport(base, options(t)...)
				require.NoError(t, err)
				return tr
			})
		})
	}
}

func TestMiddleware_OursPasses(t *testing.T) {
	t.Parallel()
	byPattern := func(t *testing.T) httpguard.Option { return httpguard.WithBreakers(breakers(t), httpguard.ByPattern) }
	for name, options := range map[string]func(t *testing.T) []httpguard.Option{
		"nothing":  func(*testing.T) []httpguard.Option { return nil },
		"bound":    func(*testing.T) []httpguard.Option { return []httpguard.Option{httpguard.WithMaxInFlight(10)} },
		"breakers": func(t *testing.T) []httpguard.Option { return []httpguard.Option{byPattern(t)} },
		"deadline": func(*testing.T) []httpguard.Option { return []httpguard.Option{httpguard.WithDeadline(time.Minute)} },
		"everything": func(t *testing.T) []httpguard.Option {
			return []httpguard.Option{
				byPattern(t),
				httpguard.WithMaxInFlight(10),
				httpguard.WithDeadline(time.Minute),
				httpguard.WithDrain(new(httpguard.Drain)),
				httpguard.WithProblemJSON(),
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits more than it works
			guardtest.TestMiddleware(t, func(next http.Handler) http.Handler {
				mw, err := httpguard.Middleware(options(t)...)
				require.NoError(t, err)
				return mw(next)
			})
		})
	}
}
