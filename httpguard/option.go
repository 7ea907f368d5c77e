package httpguard

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// Option sets one thing of a new Transport or Middleware. The last one wins. One
// that has no meaning for what is being made is an error there. The zero Option
// sets nothing.
type Option struct {
	name  string // of the function that made it
	sides side
	set   func(*settings)
}

// side is what an Option is for.
type side uint8

const (
	transportSide side = 1 << iota
	middlewareSide
	bothSides = transportSide | middlewareSide
)

// apply fills in the settings of what is made on one side, and joins all that is
// wrong with the options.
func apply(on side, opts []Option) (settings, error) {
	s := settings{name: defaultName, fallbackLimit: defaultFallbackLimit, finishAt: Headers, streaming: streams}
	var errs []error
	for _, o := range opts {
		switch {
		case o.set == nil:
		case o.sides&on != 0:
			o.set(&s)
		case on == transportSide:
			errs = append(errs, fmt.Errorf("httpguard: %s has no meaning for a Transport", o.name))
		default:
			errs = append(errs, fmt.Errorf("httpguard: %s has no meaning for a Middleware", o.name))
		}
	}
	return s, errors.Join(append(errs, s.validate())...)
}

// settings is what the options fill in.
type settings struct {
	name string

	group      *breaker.Group // together with key
	key        Key
	breaker    *breaker.Breaker
	groupGiven bool // WithBreakers was used
	oneGiven   bool // WithBreaker was used

	attemptTimeout, totalTimeout, bodyIdleTimeout *time.Duration // nil: none

	fallback      *fallbackOption
	fallbackLimit int
	classify      func(*http.Request, *http.Response, error) sluice.Outcome
	finishAt      Finish
	streaming     func(*http.Response) bool
	logger        *slog.Logger
	server        serverSettings
}

// fallbackOption is what WithFallback was given.
type fallbackOption struct {
	call func(*http.Request, error) (*http.Response, error)
	on   []Cause
}

const (
	defaultName          = "http"
	defaultFallbackLimit = 128
)

// WithName sets the name under which metrics, snapshots and logs show the
// Transport. Give each its own when a program has several.
//
// Default: "http".
func WithName(name string) Option {
	return Option{"WithName", bothSides, func(s *settings) { s.name = name }}
}

// WithBreakers gives each key of requests its own breaker out of group. A request
// whose key is empty passes without one, and a nil group lets everything pass. It
// excludes WithBreaker.
//
// Default: no breaker.
func WithBreakers(group *breaker.Group, key Key) Option {
	return Option{"WithBreakers", bothSides, func(s *settings) { s.group, s.key, s.groupGiven = group, key, true }}
}

// WithBreaker puts all requests behind one breaker, for a client that talks to one
// upstream. A nil breaker lets everything pass. It excludes WithBreakers.
//
// Default: no breaker.
func WithBreaker(b *breaker.Breaker) Option {
	return Option{"WithBreaker", bothSides, func(s *settings) { s.breaker, s.oneGiven = b, true }}
}

// WithAttemptTimeout sets how long a call may take until its response headers are
// there. It does not limit reading the body. A call that runs out of time returns
// an error that matches sluice.ErrTimeout, and counts as a failure of the
// upstream, unless it was waiting for the request's own body. It returns when the base
// does: net/http's own waits for a Read of the request body that is under way.
//
// Default: none.
func WithAttemptTimeout(d time.Duration) Option {
	return Option{"WithAttemptTimeout", transportSide, func(s *settings) { s.attemptTimeout = &d }}
}

// WithTotalTimeout sets how long a call may take altogether, until its response body
// has ended. What comes too late is an error that matches sluice.ErrTimeout: of
// RoundTrip, which then counts as a failure of the upstream, or of reading the body.
// The base sees it as the deadline of the request's context. It does not bound a
// fallback, which is asked when it is over, nor a connection that has switched
// protocols.
//
// It does what http.Client.Timeout does for a single request, for less: around any
// RoundTripper that is not net/http's own that one needs a goroutine for each call in
// flight.
//
// Default: none.
func WithTotalTimeout(d time.Duration) Option {
	return Option{"WithTotalTimeout", transportSide, func(s *settings) { s.totalTimeout = &d }}
}

// WithBodyIdleTimeout sets how long a Read of the response body may wait. A body
// that stands still for longer ends with an error that matches sluice.ErrTimeout; one
// that keeps coming may take as long as it likes, and so may its reader between two
// Reads. It works with a base whose bodies end with the context of their request, as
// net/http's do, and not after switching protocols.
//
// Default: none.
func WithBodyIdleTimeout(d time.Duration) Option {
	return Option{"WithBodyIdleTimeout", transportSide, func(s *settings) { s.bodyIdleTimeout = &d }}
}

// WithFinishAt sets when a call that goes well is finished for its breaker. At Body, a
// response is a success when its body was read to the end or closed, and reading
// that fails is judged like any other error: a failure, unless the caller went away.
// How long the call took then includes the body, and the time that its reader took,
// so choose slow limits for that.
//
// Some calls are finished at their headers all the same: half-open probes, so that
// recovery need not wait for a download; responses that are no success already;
// those without a body; switched protocols; and streams, see WithStreaming. A
// response that is dropped without being closed is counted as leaked once the
// garbage collector finds it, and its call as ignored; net/http itself keeps
// responses of HTTP/2 until their stream ends.
//
// Default: Headers.
func WithFinishAt(f Finish) Option {
	return Option{"WithFinishAt", transportSide, func(s *settings) { s.finishAt = f }}
}

// WithStreaming lets f say which responses are streams that may go on for hours, so
// that they are finished at their headers even with WithFinishAt(Body).
//
// Default: those with one of the content types text/event-stream,
// application/x-ndjson, application/jsonl, application/json-seq,
// multipart/x-mixed-replace and application/grpc.
func WithStreaming(f func(*http.Response) bool) Option {
	return Option{"WithStreaming", transportSide, func(s *settings) { s.streaming = f }}
}

// WithFallback answers in place of the upstream when the call ended for one of the
// given causes, any if none are given. f gets the request, whose body is used up,
// and the error: the refusal, the timeout, a *StatusError for a response that
// counts as a failure, or what the base returned. What it returns is returned
// instead; Respond makes a response for it, and what an http.Client needs is
// filled in.
//
// An f that has no answer returns the error; the response of the upstream, if
// there is one, is then passed on after all, and otherwise f's error is. f runs
// outside the breaker: its success never counts as one of the upstream. While it
// runs it may hold a connection, so it must not wait for another one to the same
// upstream. A panic of f goes on to the caller.
//
// Default: none.
func WithFallback(f func(*http.Request, error) (*http.Response, error), on ...Cause) Option {
	on = append([]Cause(nil), on...)
	return Option{"WithFallback", transportSide, func(s *settings) { s.fallback = &fallbackOption{f, on} }}
}

// WithFallbackLimit sets how many fallbacks may run at the same time. Beyond that
// the caller gets what the fallback would have replaced.
//
// Default: 128.
func WithFallbackLimit(n int) Option {
	return Option{"WithFallbackLimit", transportSide, func(s *settings) { s.fallbackLimit = n }}
}

// WithClassifier lets f say what a finished call says about the upstream; it gets
// a response or an error. The zero Outcome leaves it to the default, see the
// package comment. It is not asked about local refusals. An f that reads the body
// must put what it read back in front of the rest. It runs before the response is
// returned, with no lock held; when it panics, the call counts as a failure and
// the panic goes on.
//
// Default: none.
func WithClassifier(f func(*http.Request, *http.Response, error) sluice.Outcome) Option {
	return Option{"WithClassifier", transportSide, func(s *settings) { s.classify = f }}
}

// WithLogger logs each fallback at Debug. Breakers have their own logger, see
// breaker.WithLogger.
//
// Default: nothing is logged.
func WithLogger(l *slog.Logger) Option {
	return Option{"WithLogger", bothSides, func(s *settings) { s.logger = l }}
}

// validate joins all that is wrong with the options.
func (s *settings) validate() error {
	var errs []error
	complain := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("httpguard: "+format, args...))
	}
	if s.name == "" {
		complain("WithName: the name is empty")
	}
	if s.groupGiven {
		if f, isFunc := s.key.(KeyFunc); s.key == nil || isFunc && f == nil {
			complain("WithBreakers: the key is nil")
		}
		if route, isRoute := s.key.(byRoute); isRoute && route.mux == nil {
			complain("WithBreakers: the mux of ByRoute is nil")
		}
		if s.oneGiven {
			complain("WithBreaker and WithBreakers are both given: a request has one breaker")
		}
	}
	limits := [...]struct {
		option string
		d      *time.Duration
	}{{"WithAttemptTimeout", s.attemptTimeout}, {"WithTotalTimeout", s.totalTimeout}, {"WithBodyIdleTimeout", s.bodyIdleTimeout}}
	for _, limit := range limits {
		if limit.d != nil && *limit.d <= 0 {
			complain("%s: %v is not positive", limit.option, *limit.d)
		}
	}
	for _, limit := range limits { // one that could never end a call
		if total := s.totalTimeout; total != nil && limit.d != nil && *limit.d > *total {
			complain("%s: %v is longer than the %v of WithTotalTimeout", limit.option, *limit.d, *total)
		}
	}
	if s.finishAt != Headers && s.finishAt != Body {
		complain("WithFinishAt: %d is neither %v nor %v", uint8(s.finishAt), Headers, Body)
	}
	if s.streaming == nil {
		complain("WithStreaming: the function is nil")
	}
	if s.fallback != nil {
		if s.fallback.call == nil {
			complain("WithFallback: the function is nil")
		}
		for _, c := range s.fallback.on {
			if c < OnRejected || c > OnError {
				complain("WithFallback: cause %d is not one of %v", uint8(c), allCauses)
			}
		}
	}
	if s.fallbackLimit < 1 {
		complain("WithFallbackLimit: %d is not positive", s.fallbackLimit)
	}
	return errors.Join(errs...)
}
