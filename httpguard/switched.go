package httpguard

import (
	"context"
	"io"
)

// switched returns the body of a 101 response, which can be written to as well. It
// can do what the base's can. release, which may be nil, is called at its end.
func switched(body io.ReadCloser, w io.Writer, release context.CancelCauseFunc) io.ReadCloser {
	if release == nil {
		return body
	}
	both := duplexBody{body, w, release}
	if half, ok := body.(closeWriter); ok {
		return &halfClosingBody{both, half}
	}
	return &both
}

// duplexBody ends with Close only: the end of one direction is not the end of the
// other.
type duplexBody struct {
	io.ReadCloser
	io.Writer
	release context.CancelCauseFunc
}

func (b *duplexBody) Close() error {
	defer b.release(nil)
	return b.ReadCloser.Close()
}

type closeWriter interface{ CloseWrite() error }

// halfClosingBody is a duplexBody whose writing direction can be closed by itself.
type halfClosingBody struct {
	duplexBody
	half closeWriter
}

func (b *halfClosingBody) CloseWrite() error { return b.half.CloseWrite() }
