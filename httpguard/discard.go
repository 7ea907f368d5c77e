package httpguard

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"
)

const (
	drainBytes = 64 << 10
	drainFor   = 50 * time.Millisecond
)

// discard ends a response that nobody will see. What little is left of its body is
// read if that comes quickly, so that the connection can be used again; HTTP/2 needs
// no such help. The caller does not wait for it: a body that does not end with its
// context may never end. So no more are read at a time than fallbacks may run, and
// the others are closed at once.
func (f *fallback) discard(resp *http.Response) {
	body, held := resp.Body.(*heldBody)
	if held && resp.ProtoMajor <= 1 && resp.ContentLength <= drainBytes {
		if f.draining.Add(1) <= f.limit {
			go f.drain(body)
			return
		}
		f.draining.Add(-1)
	}
	resp.Body.Close()
}

// drain reads and closes a body. No other goroutine does, since a body need not stand
// that.
func (f *fallback) drain(body *heldBody) {
	defer f.draining.Add(-1)
	defer func() {
		if p := recover(); p != nil { // nobody above could, and the process would end
			body.t.bodyErrors.Add(1)
			if f.logger != nil {
				f.logger.LogAttrs(context.Background(), slog.LevelError, "response body panicked",
					slog.String("resource", f.name), slog.String("panic", fmt.Sprint(p)))
			}
		}
	}()
	defer body.Close()
	timer := time.AfterFunc(drainFor, func() { body.release(nil) })
	defer timer.Stop()
	io.CopyN(io.Discard, body.ReadCloser, drainBytes) // how it ends makes no difference
}
