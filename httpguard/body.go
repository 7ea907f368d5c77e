package httpguard

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// hold ties an attempt's context to the body of its response: release is called
// when that ends. It changes the response in place, because the base fills in the
// trailers of the one it returned. It reports false if there is nothing to wait for.
func hold(req *http.Request, resp *http.Response, release context.CancelCauseFunc) bool {
	if bodiless(req, resp) {
		return false
	}
	body := heldBody{resp.Body, release}
	w, writes := resp.Body.(io.Writer)
	if !writes {
		resp.Body = &body
		return true
	}
	both := duplexBody{body, w}
	if half, ok := resp.Body.(closeWriter); ok {
		resp.Body = &halfClosingBody{both, half}
	} else {
		resp.Body = &both
	}
	return true
}

// bodiless reports whether the response ends with its headers.
func bodiless(req *http.Request, resp *http.Response) bool {
	return resp.Body == http.NoBody || req.Method == http.MethodHead ||
		resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
}

// heldBody releases the attempt's context at the end of the body: when it was read
// to the end, when reading failed, or when it is closed, whichever is first.
type heldBody struct {
	io.ReadCloser
	release context.CancelCauseFunc // may be called more than once
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.release(nil)
	}
	return n, err
}

func (b *heldBody) Close() error {
	defer b.release(nil)
	return b.ReadCloser.Close()
}

// duplexBody is that of a 101 response, which can be written to as well. The end of
// one direction is not the end of the other, so only Close is its end.
type duplexBody struct {
	heldBody
	w io.Writer
}

func (b *duplexBody) Read(p []byte) (int, error)  { return b.ReadCloser.Read(p) }
func (b *duplexBody) Write(p []byte) (int, error) { return b.w.Write(p) }

type closeWriter interface{ CloseWrite() error }

// halfClosingBody is a duplexBody whose writing direction can be closed by itself.
type halfClosingBody struct {
	duplexBody
	half closeWriter
}

func (b *halfClosingBody) CloseWrite() error { return b.half.CloseWrite() }

const (
	drainBytes = 64 << 10
	drainFor   = 50 * time.Millisecond
)

// discard ends a response that nobody will see. What little is left of its body is
// read if that comes quickly, so that the connection can be used again; HTTP/2
// needs no such help.
func discard(resp *http.Response) {
	defer resp.Body.Close()
	body, held := resp.Body.(*heldBody)
	if !held || resp.ProtoMajor > 1 || resp.ContentLength > drainBytes {
		return
	}
	timer := time.AfterFunc(drainFor, func() { body.release(nil) })
	defer timer.Stop()
	io.CopyN(io.Discard, body, drainBytes) // how it ends makes no difference
}

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
