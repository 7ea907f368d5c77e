package httpguard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/sluicego/sluice"
)

// Cause is why a fallback is asked.
type Cause uint8

const (
	// OnRejected: the call was not made, because a breaker or another guard of this
	// module refused it.
	OnRejected Cause = iota + 1
	// OnTimeout: a time limit or the caller's own deadline ended the call.
	OnTimeout
	// OnFailure: the upstream answered with what counts as a failure, by default one
	// of the statuses from 500.
	OnFailure
	// OnError: the call ended in another error, such as a refused connection.
	OnError
)

var allCauses = [...]Cause{OnRejected, OnTimeout, OnFailure, OnError}

// String returns "rejected", "timeout", "failure" or "error".
func (c Cause) String() string {
	switch c {
	case OnRejected:
		return "rejected"
	case OnTimeout:
		return "timeout"
	case OnFailure:
		return "failure"
	case OnError:
		return "error"
	}
	return fmt.Sprintf("Cause(%d)", uint8(c))
}

// MarshalText returns the text of String, for JSON and logs.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Respond makes a response to req out of status, header and body, complete in all
// that an http.Client or a proxy relies on: for a fallback. The header, which may be
// nil, is copied; the body is not, and must not change afterwards.
func Respond(req *http.Request, status int, header http.Header, body []byte) *http.Response {
	resp := &http.Response{StatusCode: status, Header: header.Clone(), ContentLength: int64(len(body))}
	switch {
	case status == http.StatusNoContent, status == http.StatusNotModified:
		resp.ContentLength = 0
	case req.Method != http.MethodHead && len(body) > 0:
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	complete(req, resp)
	if status != http.StatusNoContent && status != http.StatusNotModified {
		resp.Header.Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	}
	return resp
}

// complete fills in what a response made by hand may lack.
func complete(req *http.Request, resp *http.Response) {
	if resp.Status == "" {
		resp.Status = strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	}
	if resp.Proto == "" {
		resp.Proto, resp.ProtoMajor, resp.ProtoMinor = "HTTP/1.1", 1, 1
	}
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	if resp.Request == nil {
		resp.Request = req
	}
	switch {
	case resp.Body == nil:
		resp.Body = http.NoBody
	case resp.Body != http.NoBody && resp.ContentLength == 0:
		resp.ContentLength = -1 // not told
	}
}

// fallback answers in place of the upstream.
type fallback struct {
	call   func(*http.Request, error) (*http.Response, error)
	on     [len(allCauses) + 1]bool // by Cause
	name   string
	logger *slog.Logger // nil: silent

	limit    int64                              // of each of the two
	running  atomic.Int64                       // fallbacks
	draining atomic.Int64                       // responses that a fallback has replaced
	counts   [len(allCauses) + 1]fallbackCounts // by Cause
}

// fallbackCounts is how fallbacks for one cause ended, written when they end.
type fallbackCounts struct{ served, declined, skipped atomic.Uint64 }

func newFallback(s *settings) *fallback {
	f := &fallback{call: s.fallback.call, name: s.name, logger: s.logger, limit: int64(s.fallbackLimit)}
	on := s.fallback.on
	if len(on) == 0 {
		on = allCauses[:]
	}
	for _, c := range on {
		f.on[c] = true
	}
	return f
}

// instead returns what the caller gets for a call that ended with resp or err.
func (f *fallback) instead(req *http.Request, resp *http.Response, verdict, err error) (*http.Response, error) {
	cause := causeOf(req.Context(), resp, verdict, err)
	if !f.on[cause] {
		return resp, err
	}
	counts := &f.counts[cause]
	defer f.running.Add(-1)
	if f.running.Add(1) > f.limit {
		counts.skipped.Add(1)
		return resp, err
	}
	reason := err
	if resp != nil {
		reason = verdict
	}
	answer, declined := f.ask(req, resp, cause, reason)
	switch {
	case declined == nil:
		counts.served.Add(1)
		if resp != nil {
			f.discard(resp)
		}
		return answer, nil
	case resp != nil:
		counts.declined.Add(1)
		return resp, nil
	}
	counts.declined.Add(1)
	return nil, declined
}

// ask calls the foreign function and makes sure that it returns either a complete
// response or an error. When it panics, resp is closed and the panic goes on.
func (f *fallback) ask(req *http.Request, resp *http.Response, cause Cause, reason error) (answer *http.Response, declined error) {
	returned := false
	defer func() {
		if !returned && resp != nil {
			resp.Body.Close()
		}
	}()
	answer, err := f.call(req, reason)
	switch {
	case err != nil:
		declined = err
	case answer == nil:
		declined = fmt.Errorf("httpguard: the fallback returned neither a response nor an error for: %w", reason)
	case answer.StatusCode < 200 || answer.StatusCode > 999:
		declined = fmt.Errorf("httpguard: the fallback returned status %d, which is not in [200, 999], for: %w", answer.StatusCode, reason)
	default:
		complete(req, answer)
	}
	if declined != nil && answer != nil {
		closeBody(answer.Body)
		answer = nil
	}
	f.log(req, cause, reason, answer, declined)
	returned = true
	return answer, declined
}

func (f *fallback) log(req *http.Request, cause Cause, reason error, answer *http.Response, declined error) {
	ctx := req.Context()
	if f.logger == nil || !f.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	attrs := []slog.Attr{
		slog.String("resource", f.name),
		slog.String("upstream", origin(req.URL)),
		slog.String("cause", cause.String()),
		slog.String("error", redacted(req.URL, reason)),
	}
	if declined != nil {
		f.logger.LogAttrs(ctx, slog.LevelDebug, "fallback declined", append(attrs, slog.String("answer", redacted(req.URL, declined)))...)
		return
	}
	f.logger.LogAttrs(ctx, slog.LevelDebug, "fallback served", append(attrs, slog.Int("status", answer.StatusCode))...)
}

// causeOf returns for which cause a fallback may be asked, 0 if for none: the call
// went well, or its end is the caller's own doing.
func causeOf(ctx context.Context, resp *http.Response, verdict, err error) Cause {
	switch {
	case verdict == nil:
		return 0
	case resp != nil:
		if sluice.Classify(ctx, verdict) == sluice.Failure {
			return OnFailure
		}
		return 0
	case errors.Is(err, sluice.ErrRejected):
		return OnRejected
	case sluice.Classify(ctx, verdict) == sluice.Ignored:
		return 0
	case timedOut(err), errors.Is(context.Cause(ctx), sluice.ErrTimeout):
		return OnTimeout
	}
	return OnError
}

// timedOut reports whether err says that some time limit is over.
func timedOut(err error) bool {
	var limit net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &limit) && limit.Timeout()
}
