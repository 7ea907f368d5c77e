package httpguard

import (
	"io"
	"sync/atomic"
)

// upload is a request body that may come from far away while it is sent, such as
// from the client of a proxy. It finds out whether the call ended because the body
// did, which is not the upstream's doing. Requests with a GetBody hold theirs in
// memory and need none.
type upload struct {
	io.ReadCloser
	want   int64       // the length that was promised, not positive if none was
	got    int64       // written by the one who reads
	closed atomic.Bool // written by Close, before the body itself is closed
	broken atomic.Bool // written by Read, before it returns the reason
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
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
