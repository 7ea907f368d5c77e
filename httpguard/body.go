package httpguard

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/internal/stage"
)

// heldBody is the body of a response whose call has something left to do at its
// end: when it was read to the end, when reading failed, or when it is closed,
// whichever is first.
type heldBody struct {
	io.ReadCloser
	t         *Transport
	req, sent *http.Request
	ctx       context.Context         // of the call; nil if it has none of its own
	release   context.CancelCauseFunc // ends ctx, may be called more than once; nil without one
	idle      *time.Timer             // runs during a Read; made and used by the reader
	// state only grows: set to waiting by await, to over by whoever sees the end.
	state atomic.Uint32
	lease *lease // written by await before state is waiting
}

const (
	open    = iota
	waiting // the breaker is to be told
	over
)

// hold puts a heldBody in the place of the response's. It changes the response in
// place, because the base fills in the trailers of the one it returned. A call that
// switched protocols is over for its breaker, and the connection the caller's own. That
// a body can be written to is not enough for that: a file of a base that caches can be.
func hold(resp *http.Response, body *heldBody) *heldBody {
	if w, ok := resp.Body.(io.Writer); ok && (resp.StatusCode == http.StatusSwitchingProtocols || body.req.Method == http.MethodConnect) {
		resp.Body = switched(resp.Body, w, body.release)
		return nil
	}
	body.ReadCloser = resp.Body
	resp.Body = body
	return body
}

// bodiless reports whether the response ends with its headers.
func bodiless(req *http.Request, resp *http.Response) bool {
	return resp.Body == http.NoBody || req.Method == http.MethodHead ||
		resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
}

// await puts off telling the breaker until the body ends. It reports false if that
// has happened already, by a classifier that read it.
func (b *heldBody) await(br *breaker.Breaker, ticket stage.Ticket) bool {
	b.lease = b.t.lease(br, ticket, b.req.Context(), b.release)
	if b.state.CompareAndSwap(open, waiting) {
		return true
	}
	b.lease.end()
	b.lease = nil
	return false
}

func (b *heldBody) Read(p []byte) (int, error) {
	if limit := b.t.limits.idle; limit != nil {
		b.watch(limit)
		defer b.idle.Stop()
	}
	n, err := b.ReadCloser.Read(p)
	switch err {
	case nil:
	case io.EOF:
		b.finish(b.state.Swap(over), nil)
	default:
		if b.ctx != nil {
			if limit := b.t.limits.ended(b.ctx); limit != nil {
				err = limit
			}
		}
		b.finish(b.state.Swap(over), err)
	}
	return n, err
}

// watch starts the time that one Read may take.
func (b *heldBody) watch(limit *limitError) {
	if b.idle != nil {
		b.idle.Reset(limit.after)
		return
	}
	release := b.release // the timer must not hold the body
	b.idle = time.AfterFunc(limit.after, func() { release(limit) })
}

func (b *heldBody) Close() error {
	was := b.state.Swap(over) // before a Read under way fails because of it
	defer b.finish(was, nil)
	return b.ReadCloser.Close()
}

// finish does what has to be done, if was says that nobody has. err is nil if the
// body came whole, or was not wanted any further.
func (b *heldBody) finish(was uint32, err error) {
	if b.release != nil {
		b.release(nil)
	}
	if was == over {
		return
	}
	t, ctx := b.t, b.req.Context()
	blamed := sluice.Outcome(0)
	if err != nil {
		blamed = t.blame(b.req, b.sent, err)
	}
	if err != nil && sluice.Classify(ctx, sluice.Mark(err, blamed)) != sluice.Ignored {
		t.bodyErrors.Add(1)
	}
	if was != waiting {
		return
	}
	br, ticket := b.lease.end()
	b.lease = nil
	completed := false
	defer func() {
		if !completed { // the classifier panicked
			abandon(br, ticket, ctx)
		}
	}()
	if err != nil {
		err = t.verdict(b.req, nil, err, blamed)
	}
	completed = true
	settle(br, ticket, ctx, b.sent, err)
}
