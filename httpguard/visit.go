package httpguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// visit is one request inside a Gate: what it has taken, and what is known of how it
// goes. It is part of the ResponseWriter that the handler gets. The handler may use
// that from several goroutines, so what they write is atomic.
type visit struct {
	gate    *Gate
	request *http.Request    // as the Gate got it; the breaker was asked with its context
	limited context.Context  // the handler's, if the Gate has given it a deadline
	breaker *breaker.Breaker // nil if none
	ticket  stage.Ticket

	status  atomic.Int32          // the final one that was sent, 0 before that; the first one stays
	flushed atomic.Int64          // when something was first flushed, 0 before that; the first one stays
	said    atomic.Pointer[error] // what the handler said with Fail, Ignore or Refuse; the last one counts
	settled atomic.Bool           // whoever sets it tells the breaker
	left    atomic.Bool           // whoever sets it gives back the slot
	answer  StatusError           // written by the one who settles
}

// run calls the handler. Neither its panic nor the end of its goroutine is kept from
// going on. w is the writer that v is part of, outer the one that the Gate was given.
func (v *visit) run(outer, w http.ResponseWriter, next http.Handler) {
	r := v.request
	returned := false
	defer v.leave()
	defer func() { v.end(returned) }()
	if v.gate.late == nil && !v.ticket.Probe() {
		next.ServeHTTP(w, r)
		returned = true
		return
	}
	returned = v.runCopy(w, next)
	if v.status.Load() == 0 && v.pastDeadline() && !v.settled.Load() {
		v.gate.refuse(outer, r, v.gate.late)
	}
}

// runCopy is run for a handler that needs a context of its own.
func (v *visit) runCopy(w http.ResponseWriter, next http.Handler) bool {
	r := v.request
	ctx := r.Context()
	if v.ticket.Probe() {
		ctx = stage.WithProbe(ctx)
	}
	if late := v.gate.late; late != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, late.after, sluice.ErrTimeout)
		defer cancel()
		v.limited = ctx
	}
	inner := r.WithContext(ctx)
	defer func() {
		if r.MultipartForm == nil {
			r.MultipartForm = inner.MultipartForm // the server removes the files of the request that it made
		}
		r.Pattern = inner.Pattern // for what stands around the Gate
	}()
	next.ServeHTTP(w, inner)
	return true
}

// commit notes the final status that was sent.
func (v *visit) commit(status int) {
	if v.status.Load() == 0 {
		v.status.CompareAndSwap(0, int32(status))
	}
}

// begin notes that the client has got something. A stream is finished then, or a slow
// rule would see hours, and so is a probe, or the breaker would wait for hours. Of
// other responses it is known how long they took, and not yet how they end.
func (v *visit) begin(header http.Header) {
	if v.flushed.Load() != 0 {
		return
	}
	now := clock.Now()
	if v.flushed.CompareAndSwap(0, now) && (v.ticket.Probe() || isEventStream(header)) {
		v.settle(now, true)
	}
}

// takenOver is the end of a request whose connection belongs to the handler now.
func (v *visit) takenOver() {
	defer v.leave()
	v.commit(http.StatusSwitchingProtocols)
	v.settle(clock.Now(), true)
}

// end is the end of all others.
func (v *visit) end(returned bool) {
	if !v.settled.Load() {
		v.settle(clock.Now(), returned)
	}
}

// settle tells the breaker how the request went, unless it has been told.
func (v *visit) settle(now int64, completed bool) {
	if v.settled.Swap(true) {
		return
	}
	answered := false // not yet, by the classifier
	defer func() {
		if !answered {
			v.tell(now, nil, false)
		}
	}()
	verdict := v.verdict(completed)
	answered = true
	if verdict == nil && completed {
		if at := v.flushed.Load(); at != 0 {
			now = at // a success took as long as it took to begin
		}
	}
	v.tell(now, verdict, completed || verdict != nil)
}

// tell passes it on. A verdict of nil is a success, if the handler has completed.
func (v *visit) tell(now int64, verdict error, completed bool) {
	if v.breaker != nil { // before anything foreign, such as a logger
		v.breaker.Settle(v.ticket, v.request.Context(), now, verdict, completed)
	}
	if verdict != nil || !completed {
		v.gate.countLeft(v.request, verdict)
	}
}

// leave gives back the slot, unless that has been done.
func (v *visit) leave() {
	if !v.left.Swap(true) {
		v.gate.leave()
	}
}

// verdict is the error that the request ended with, nil for a success. It is marked
// only where it does not matter who ended the request: the breaker knows that.
func (v *visit) verdict(completed bool) error {
	if said := v.said.Load(); said != nil {
		return *said
	}
	status := int(v.status.Load())
	switch {
	case !completed:
		return nil
	case status == 0 && v.pastDeadline():
		return v.gate.overdue
	case status == 0:
		status = http.StatusOK // what the server sends for a handler that has written nothing
	}
	o := v.gate.outcome(v.request, status)
	if o == sluice.Success {
		return nil
	}
	if o == sluice.Failure && v.pastDeadline() {
		return v.gate.overdue
	}
	v.answer.Code = status
	if o == sluice.Failure {
		return &v.answer
	}
	return sluice.Mark(&v.answer, o)
}

// pastDeadline reports whether the Gate's own deadline ended the handler's context.
func (v *visit) pastDeadline() bool {
	return v.limited != nil && context.Cause(v.limited) == sluice.ErrTimeout
}

// outcome is what a status says about the route.
func (g *Gate) outcome(r *http.Request, status int) sluice.Outcome {
	if f := g.settings.server.classify; f != nil {
		if o := f(r, status); o != 0 {
			return o
		}
	}
	if status == http.StatusTooManyRequests {
		return sluice.Ignored // one client has used up its share; the route is as well as before
	}
	return statusOutcome(status)
}

// countLeft counts a request that was no success because its client has left.
func (g *Gate) countLeft(r *http.Request, verdict error) {
	late := g.late != nil && errors.Is(verdict, g.late) // it was the deadline
	if late || !errors.Is(r.Context().Err(), context.Canceled) {
		return
	}
	g.left.Add(1)
	g.log(r.Context(), slog.LevelDebug, "client has left",
		slog.Int("status", StatusClientClosedRequest),
		slog.String("method", knownMethod(r.Method)),
		slog.String("pattern", r.Pattern),
	)
}

// isEventStream reports whether a response is a stream of events, which has no end.
func isEventStream(header http.Header) bool {
	const events = "text/event-stream"
	kind := header.Get("Content-Type")
	return len(kind) >= len(events) && strings.EqualFold(kind[:len(events)], events)
}

// lateError is what a request past its deadline ends with. There is one for each Gate.
type lateError struct {
	name  string
	after time.Duration
}

func (e *lateError) Error() string {
	return fmt.Sprintf("httpguard %q: no answer within %v", e.name, e.after)
}

// Unwrap makes it match sluice.ErrTimeout and context.DeadlineExceeded.
func (e *lateError) Unwrap() error { return sluice.ErrTimeout }
