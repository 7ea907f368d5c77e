package httpguard

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Gate is what a Middleware is made of, for programs that want its numbers. It puts
// guards in front of http.Handlers: a drain, a bound of requests in flight, a circuit
// breaker for each route, and a deadline, in this order.
//
// It promises that whatever a request has taken is given back, also when the handler
// panics, ends its goroutine or takes over the connection; that the handler can do
// with its ResponseWriter what it could without the Gate; and that it gets its own
// request, of which a copy is made only for a deadline and for the probe of a
// half-open breaker. A panic of a handler goes on.
//
// Most callers want Middleware, or Wrap for several handlers behind one Gate. A
// request costs one allocation if somebody has to know its status, which breakers
// and deadlines do, and none otherwise. A Gate starts no goroutine, blocks nobody and
// needs no closing. It is safe for concurrent use and must not be copied; the zero
// Gate is of no use, make one with NewGate.
type Gate struct {
	settings settings
	exempt   exempt
	drain    *Drain     // nil without one
	slots    *slots     // nil without a bound
	draining error      // what drain refuses with
	full     error      // what slots refuses with
	late     *lateError // what a request past its deadline ends with; nil without one
	overdue  error      // the same, for a breaker
	// Requests that went by something, written by the request itself.
	exempted, bypassed, unmatched, left atomic.Uint64
	drained                             atomic.Uint64 // written by enter
	warned                              atomic.Bool   // about a request without a route
}

// NewGate returns a Gate. It returns every complaint about the options at once.
//
// Without options it does nothing but call the handlers.
func NewGate(opts ...Option) (*Gate, error) {
	s, err := apply(middlewareSide, opts)
	open, patterns := newExempt(s.server.exempt)
	if err := errors.Join(err, s.validateServer(), patterns); err != nil {
		return nil, err
	}
	g := &Gate{settings: s, exempt: open, drain: s.server.drain}
	g.draining = &drainError{s.name}
	if most := s.server.maxInFlight; most != nil {
		g.slots = &slots{most: uint32(*most)}
		g.full = &fullError{s.name, g.slots.most}
	}
	if d := s.server.deadline; d != nil {
		g.late = &lateError{s.name, *d}
		g.overdue = sluice.Mark(g.late, sluice.Failure)
	}
	return g, nil
}

// Middleware returns the Wrap of a new Gate: the function that net/http, chi, gorilla
// and others know as a middleware.
func Middleware(opts ...Option) (func(http.Handler) http.Handler, error) {
	g, err := NewGate(opts...)
	if err != nil {
		return nil, err
	}
	return g.Wrap, nil
}

// Wrap returns next behind the Gate. All handlers of one Gate share its bound. As for a
// mux, a nil handler is a panic.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	if f, isFunc := next.(http.HandlerFunc); next == nil || isFunc && f == nil {
		panic("httpguard: Gate.Wrap: the handler is nil")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, next) })
}

// serve lets the request through, or refuses it.
func (g *Gate) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if g.exempt.has(r) {
		g.exempted.Add(1)
		next.ServeHTTP(w, r)
		return
	}
	ctx := r.Context()
	if stage.Bypassed(ctx) {
		g.bypassed.Add(1)
		next.ServeHTTP(w, r)
		return
	}
	if err := ctx.Err(); err != nil {
		g.refuse(w, r, err) // nobody waits for it any more: nothing is spent
		return
	}
	b := g.breakerFor(r)
	if err := g.enter(); err != nil {
		g.refuse(w, r, err)
		return
	}
	if b == nil && g.late == nil && !g.mayBeTakenOver(r) {
		defer g.leave()
		next.ServeHTTP(w, r)
		return
	}
	g.watch(w, r, next, b)
}

// watch is serve from where a slot is taken, for a request whose end matters.
func (g *Gate) watch(w http.ResponseWriter, r *http.Request, next http.Handler, b *breaker.Breaker) {
	admitted := false
	ctx := r.Context()
	var ticket stage.Ticket
	defer func() {
		if admitted {
			return
		}
		g.leave()
		if ticket.Ref != nil { // a writer of others has panicked when it was asked
			b.Settle(ticket, ctx, clock.Now(), nil, false)
		}
	}()
	if b != nil {
		var err error
		if ticket, err = b.Admit(ctx, clock.Now()); err != nil {
			g.refuse(w, r, err)
			return
		}
	}
	wrapped, v := wrap(w, r)
	v.gate, v.request, v.breaker, v.ticket = g, r, b, ticket
	admitted = true
	v.run(w, wrapped, next)
}

// breakerFor returns the breaker that the request has to pass, nil if none.
func (g *Gate) breakerFor(r *http.Request) *breaker.Breaker {
	s := &g.settings
	if s.group == nil {
		return s.breaker
	}
	if key := s.key.Key(r); key != "" {
		return s.group.Get(key)
	}
	g.unmatched.Add(1)
	if !g.warned.Load() && !g.warned.Swap(true) {
		g.warnUnmatched(r)
	}
	return nil
}

// enter takes what a request needs before it may ask its breaker, or returns the
// refusal.
func (g *Gate) enter() error {
	if !g.drain.enter() {
		g.drained.Add(1)
		return g.draining
	}
	if !g.slots.take() {
		g.drain.leave()
		return g.full
	}
	return nil
}

// leave gives it back.
func (g *Gate) leave() {
	g.slots.release()
	g.drain.leave()
}

// mayBeTakenOver reports whether the handler might take over the connection, and with
// it keep a slot for days.
func (g *Gate) mayBeTakenOver(r *http.Request) bool {
	return (g.slots != nil || g.drain != nil) && r.ProtoMajor == 1 &&
		(r.Method == http.MethodConnect || len(r.Header["Upgrade"]) > 0)
}

// warnUnmatched tells, once, that requests pass without a breaker.
func (g *Gate) warnUnmatched(r *http.Request) {
	why := "the key function returned no key"
	switch g.settings.key.(type) {
	case byPattern:
		why = "no mux has seen it yet: inside of one, each route has a pattern; around one, use ByRoute"
	case byRoute:
		why = "the mux has no route for it"
	}
	g.log(r.Context(), slog.LevelWarn, "request without a route passes without a breaker; this is said once",
		slog.String("method", knownMethod(r.Method)), slog.String("reason", why))
}

// log writes a line if there is somebody to read it.
func (g *Gate) log(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	l := g.settings.logger
	if l == nil || !l.Enabled(ctx, level) {
		return
	}
	l.LogAttrs(ctx, level, text, append([]slog.Attr{slog.String("resource", g.settings.name)}, attrs...)...)
}

// knownMethod returns a method of RFC 9110 and 5789 as it is, and "_OTHER" for what a
// client has made up.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	}
	return "_OTHER"
}
