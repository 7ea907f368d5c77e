package httpguard

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sluicego/sluice"
)

// serverSettings is what the options fill in that only a Middleware has.
type serverSettings struct {
	maxInFlight *int64 // nil: no bound
	exempt      []string
	deadline    *time.Duration // nil: none
	classify    func(*http.Request, int) sluice.Outcome
	problem     bool
	refusal     func(http.ResponseWriter, *http.Request, error)
	drain       *Drain
}

// WithMaxInFlight sets how many requests may be inside at the same time, in all
// handlers of the Gate together. One more is refused at once; nothing waits. A
// request is inside until its handler returns. One that asks for another protocol,
// such as a websocket, is only until the handler has taken over the connection.
//
// Default: no bound.
func WithMaxInFlight(n int) Option {
	most := int64(n)
	return Option{"WithMaxInFlight", middlewareSide, func(s *settings) { s.server.maxInFlight = &most }}
}

// WithExempt lets requests that match one of the patterns of http.ServeMux pass by
// all guards, uncounted: health checks, metrics and whatever must answer when all
// else is full. A request is matched as it comes to the Gate, and one that a mux
// would redirect matches nothing. Several of these options add up.
//
// A pattern without wildcards, without a host and without a slash at its end costs
// a lookup in a map; the others cost what they cost in a mux.
//
// Default: the health and reflection calls of gRPC, over HTTP/2, always.
func WithExempt(patterns ...string) Option {
	patterns = append([]string(nil), patterns...)
	return Option{"WithExempt", middlewareSide, func(s *settings) { s.server.exempt = append(s.server.exempt, patterns...) }}
}

// WithDeadline gives the context of each request a deadline, with sluice.ErrTimeout
// as its cause. It is for the handler to heed: it keeps running until it returns.
// When it then has written nothing, the answer is a 503; what has been begun stays as
// it is, and a connection that was taken over keeps the context: leave routes with
// websockets and streams without a deadline. A request that failed after its deadline
// counts as a failure, even if its client has left since.
//
// The handler gets a copy of the request, which costs a few allocations. What the
// handler leaves in the copy and others need is put back: the pattern that a mux
// found, and the form whose temporary files the server removes.
//
// Default: none.
func WithDeadline(d time.Duration) Option {
	return Option{"WithDeadline", middlewareSide, func(s *settings) { s.server.deadline = &d }}
}

// WithStatusClassifier lets f say what a finished request says about its route, by
// the status that was sent. The zero Outcome leaves it to the default, see the
// package comment. A failure is ignored all the same if the client has left. It is
// not asked where the handler has used Fail, Ignore or Refuse. It runs with no lock
// held; when it panics, the request counts as a failure and the panic goes on.
//
// Default: none.
func WithStatusClassifier(f func(r *http.Request, status int) sluice.Outcome) Option {
	return Option{"WithStatusClassifier", middlewareSide, func(s *settings) { s.server.classify = f }}
}

// WithProblemJSON makes refusals application/problem+json (RFC 9457) instead of a
// line of text. Those that a handler makes with Refuse are so too where the Gate had
// to wrap its ResponseWriter, as one with breakers does.
//
// Default: text.
func WithProblemJSON() Option {
	return Option{"WithProblemJSON", middlewareSide, func(s *settings) { s.server.problem = true }}
}

// WithRefusal lets f write the answer for a request that the Gate refuses, with the
// refusal as err: for clients that want something of their own, such as those of
// gRPC-Web. Retry-After and Cache-Control are set already. f should not read the
// body of the request, and should not tell strangers what err says.
//
// Default: what Refuse writes.
func WithRefusal(f func(w http.ResponseWriter, r *http.Request, err error)) Option {
	return Option{"WithRefusal", middlewareSide, func(s *settings) { s.server.refusal = f }}
}

// WithDrain lets d close the Gate: see Drain. Several Gates may share one.
//
// Default: none.
func WithDrain(d *Drain) Option {
	return Option{"WithDrain", middlewareSide, func(s *settings) { s.server.drain = d }}
}

// validateServer joins all that is wrong with the options for a Gate.
func (s *settings) validateServer() error {
	var errs []error
	complain := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("httpguard: "+format, args...))
	}
	if _, isHost := s.key.(byHost); isHost {
		complain("WithBreakers: ByHost tells upstreams apart, and requests to a server have none; use ByPattern or ByRoute")
	}
	o := &s.server
	if o.maxInFlight != nil && (*o.maxInFlight < 1 || *o.maxInFlight > maxSlots) {
		complain("WithMaxInFlight: %d is not in [1, %d]", *o.maxInFlight, int64(maxSlots))
	}
	if o.deadline != nil && *o.deadline <= 0 {
		complain("WithDeadline: %v is not positive", *o.deadline)
	}
	return errors.Join(errs...)
}
