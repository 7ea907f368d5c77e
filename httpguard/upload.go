package httpguard

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// upload is a request body that may come from far away while it is sent, such as
// from the client of a proxy. It finds out whether the call ended because the body
// did or did not come, which is not the upstream's doing, and how long the upstream
// had to wait for it. Requests with a GetBody are taken to hold theirs in memory, and
// have none.
type upload struct {
	io.ReadCloser
	ctx    context.Context // of the call
	want   int64           // the length that was promised, not positive if none was
	got    int64           // written by the one who reads
	closed atomic.Bool     // written by Close, before the body itself is closed
	broken atomic.Bool     // written by Read, before it returns the reason
	// Read sets since when it begins. At its end it sets overran if ctx has ended
	// meanwhile, clears since, and adds to waited, in this order.
	since, waited atomic.Int64 // of the Read under way; of those before
	overran       atomic.Bool
	settled       atomic.Bool // whoever sets it tells the breaker
}

func (u *upload) Read(p []byte) (int, error) {
	alive, start := u.ctx.Err() == nil, clock.Now()
	u.since.Store(start)
	n, err := u.ReadCloser.Read(p)
	if alive && u.ctx.Err() != nil {
		u.overran.Store(true)
	}
	u.since.Store(0)
	u.waited.Add(clock.Now() - start)
	u.got += int64(n)
	switch {
	case err == nil:
	case u.closed.Load(): // the base has lost interest, and a Read under way fails for that
	case err != io.EOF, u.want > 0 && u.got != u.want:
		u.broken.Store(true)
	}
	return n, err
}

func (u *upload) Close() error {
	u.closed.Store(true)
	return u.ReadCloser.Close()
}

// awaited reports, of a call whose context has ended before the response was there,
// whether it was this body that had not come.
func (u *upload) awaited() bool { return u.overran.Load() || u.since.Load() != 0 }

// waitedFor returns how much of the time until now a call has waited for its own body.
func waitedFor(sent *http.Request, now int64) int64 {
	u, ok := sent.Body.(*upload)
	if !ok {
		return 0
	}
	d := u.waited.Load()
	if since := u.since.Load(); since != 0 && since < now {
		d += now - since
	}
	return d
}

// ownFault is the error of a call that ended because of its own request. It is marked,
// so that no guard further out takes it for a failure.
type ownFault struct{ error }

func newOwnFault(err error) error { return ownFault{sluice.Ignore(err)} }

func (e ownFault) Unwrap() error { return e.error }

// Timeout and Temporary keep a net.Error one.
func (e ownFault) Timeout() bool   { return timedOut(e.error) }
func (e ownFault) Temporary() bool { return timedOut(e.error) }
