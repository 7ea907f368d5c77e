package httpguard

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Transport is an http.RoundTripper that puts guards around another one: a
// fallback, a circuit breaker for each upstream, and time limits, in this order.
//
// It keeps the contract of http.RoundTripper in every case. It never writes to
// the request, and closes its body when the base does not get it. A response is
// passed on as the base returned it, whatever its status, and never together with
// an error. The context of an attempt lives as long as the response body.
//
// Use it as the Transport of an http.Client or an httputil.ReverseProxy. A
// request that needs no context of its own is passed on as it is, and then
// neither a call nor a refusal allocates. A Transport starts no goroutine of its
// own, but for each response that a fallback has replaced, to read a small rest of
// its body; it needs no closing. It is safe for concurrent use and must not be copied;
// the zero Transport is of no use, make one with NewTransport.
type Transport struct {
	base     http.RoundTripper
	settings settings
	limits   limits
	hosts    *hostKeys // what the keys of known hosts are; nil if keys are not by host
	fallback *fallback // nil without one
	judges   bool      // somebody wants to know what a call says about its upstream
	derives  bool      // each call needs a context of its own
	// Requests that passed without a breaker, written by the request itself.
	bypassed, unkeyed atomic.Uint64
	// Bodies that broke off, written by who reads them, and that were never closed,
	// written by the garbage collector's cleanup.
	bodyErrors, leakedBodies atomic.Uint64
	leases                   sync.Pool // of *lease, those not in use
}

// NewTransport returns a Transport around base; nil is http.DefaultTransport. It
// returns every complaint about the options at once.
//
// Without options it does nothing but hand requests to base.
func NewTransport(base http.RoundTripper, opts ...Option) (*Transport, error) {
	s, err := apply(transportSide, opts)
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport
	}
	t := &Transport{base: base, settings: s, limits: newLimits(&s)}
	if _, ok := s.key.(byHost); ok {
		t.hosts = newHostKeys()
	}
	if s.fallback != nil {
		t.fallback = newFallback(&s)
	}
	t.judges = s.group != nil || s.breaker != nil || t.fallback != nil
	// A response that a fallback replaces is drained, and that must have an end.
	t.derives = t.limits.any() || t.fallback != nil && t.fallback.on[OnFailure]
	return t, nil
}

// Unwrap returns the RoundTripper that the guards stand around.
func (t *Transport) Unwrap() http.RoundTripper { return t.base }

// CloseIdleConnections closes those of the base, if it can. http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip makes the call if the breaker of its upstream admits it. An error that
// matches sluice.ErrRejected says that it was not made, one that matches
// sluice.ErrTimeout that a time limit ended it; every other one is the base's. Where
// the request itself was to blame, it is marked as sluice.Ignore does.
//
// It returns when the base does, at the headers of the response, and what the call
// says about the upstream is decided then, unless WithFinishAt says otherwise.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL == nil { // nothing could tell its upstream; the base has an error for it
		return t.base.RoundTrip(req)
	}
	if stage.Bypassed(req.Context()) {
		t.bypassed.Add(1)
		return t.base.RoundTrip(req)
	}
	resp, verdict, err := t.guarded(req)
	if t.fallback == nil {
		return resp, err
	}
	return t.fallback.instead(req, resp, verdict, err)
}

// phase is how far a call has come.
type phase uint8

const (
	asking   phase = iota // for its breaker and for leave
	calling               // the base has the request
	settling              // the breaker is being told
	returning
)

// guarded makes the call inside the breaker. Its verdict is the error that the
// breaker was told the call ended with; nil says that the upstream did well.
func (t *Transport) guarded(req *http.Request) (resp *http.Response, verdict, err error) {
	ctx := req.Context()
	var b *breaker.Breaker
	var ticket stage.Ticket
	at := asking
	defer func() {
		// Unless it was refused, a call that does not return normally is in a panic or
		// a Goexit, of the base or of a hook, which goes on.
		switch at {
		case asking:
			closeBody(req.Body) // the base, which would do it, never sees the request
		case calling:
			abandon(b, ticket, ctx)
			fallthrough
		case settling:
			if resp != nil {
				resp.Body.Close()
			}
		}
	}()
	if err = ctx.Err(); err != nil {
		return nil, err, err // nobody waits for it any more: nothing is spent
	}
	if b = t.breakerFor(req); b != nil {
		if ticket, err = b.Admit(ctx, clock.Now()); err != nil {
			return nil, err, err
		}
	}
	at = calling
	sent, resp, body, err := t.send(ctx, req, b, ticket)
	blamed := sluice.Outcome(0)
	if err != nil {
		if blamed = t.blame(req, sent, err); blamed == sluice.Ignored {
			err = newOwnFault(err)
		}
	}
	verdict = t.verdict(req, resp, err, blamed)
	if body != nil && verdict == nil && t.waits(b, ticket, resp) && body.await(b, ticket) {
		at = returning
		return resp, nil, nil
	}
	at = settling
	settle(b, ticket, ctx, sent, verdict)
	at = returning
	return resp, verdict, err
}

// breakerFor returns the breaker that the request has to pass, nil if none.
func (t *Transport) breakerFor(req *http.Request) *breaker.Breaker {
	s := &t.settings
	if s.group == nil {
		return s.breaker
	}
	var key string
	if t.hosts != nil {
		key = t.hosts.of(req.URL)
	} else {
		key = s.key.Key(req)
	}
	if key == "" {
		t.unkeyed.Add(1)
		return nil
	}
	return s.group.Get(key)
}

// waits reports whether the breaker is told only when the body has ended. A probe
// never waits: a long download would keep the breaker half-open.
func (t *Transport) waits(b *breaker.Breaker, ticket stage.Ticket, resp *http.Response) bool {
	return t.settings.finishAt == Body && b != nil && !ticket.Probe() && !t.settings.streaming(resp)
}

// settle tells the breaker, if there is one, how the call ended. How long the call has
// waited for its own body makes it no slow one.
func settle(b *breaker.Breaker, ticket stage.Ticket, ctx context.Context, sent *http.Request, verdict error) {
	if b == nil {
		return
	}
	if u, ok := sent.Body.(*upload); ok && u.settled.Swap(true) {
		return
	}
	now := clock.Now()
	if d := waitedFor(sent, now); d > 0 && (verdict == nil || sluice.Classify(ctx, verdict) == sluice.Ignored) {
		now -= d // no failure: the time of that decides more than how long it took
	}
	b.Settle(ticket, ctx, now, verdict, true)
}

// abandon tells the breaker, if there is one, that the call did not return.
func abandon(b *breaker.Breaker, ticket stage.Ticket, ctx context.Context) {
	if b != nil {
		b.Settle(ticket, ctx, clock.Now(), nil, false)
	}
}

func closeBody(body io.Closer) {
	if body != nil {
		body.Close()
	}
}
