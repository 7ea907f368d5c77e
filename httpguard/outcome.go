package httpguard

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluicego/sluice"
)

// A StatusError stands for a response that is no success where an error is wanted:
// a fallback gets one as its cause, and so does a breaker's own classifier. If the
// response asks to be left alone for a time, sluice.RetryAfter tells.
type StatusError struct {
	Code   int
	Header http.Header // the response's own: to be read while the response is not yet closed
}

// Error tells the status.
func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("httpguard: status %d %s", e.Code, http.StatusText(e.Code)))
}

// verdict is the error that a breaker is told the call ended with: nil for a
// success, and marked where it would not come to the right outcome by itself. blamed
// is what blame says of err.
func (t *Transport) verdict(req *http.Request, resp *http.Response, err error, blamed sluice.Outcome) error {
	if !t.judges {
		return err
	}
	o := t.outcome(req, resp, err, blamed)
	switch {
	case o == 0:
		return err
	case o == sluice.Success:
		return nil
	case err == nil:
		err = statusError(resp)
	}
	return sluice.Mark(err, o)
}

// outcome says what the end of the call says about the upstream. It has no opinion
// on an error for which it matters who ended the call: the breaker knows that.
func (t *Transport) outcome(req *http.Request, resp *http.Response, err error, blamed sluice.Outcome) sluice.Outcome {
	if err != nil && errors.Is(err, sluice.ErrRejected) {
		return 0
	}
	if t.settings.classify != nil {
		if o := t.settings.classify(req, resp, err); o != 0 {
			return o
		}
	}
	if err == nil {
		return statusOutcome(resp.StatusCode)
	}
	return blamed
}

// blame is the default for an error.
func (t *Transport) blame(req, sent *http.Request, err error) sluice.Outcome {
	limited := t.limits.has(err)
	u, uploads := sent.Body.(*upload)
	switch {
	case uploads && u.awaited() && (limited || req.Context().Err() != nil):
		return sluice.Ignored
	case limited:
		return sluice.Failure // whatever the caller has done since
	case faultOfCaller(req, sent, err):
		return sluice.Ignored
	}
	return 0
}

// statusOutcome is the default for a response.
func statusOutcome(code int) sluice.Outcome {
	switch {
	case code == http.StatusTooManyRequests:
		return sluice.Throttled
	case code < 200 && code != http.StatusSwitchingProtocols: // not the status of an answer
		return sluice.Failure
	case code < http.StatusInternalServerError:
		return sluice.Success
	case code == http.StatusNotImplemented,
		code == http.StatusHTTPVersionNotSupported,
		code == http.StatusNetworkAuthenticationRequired:
		return sluice.Success // the upstream is well; the request is not for it
	}
	return sluice.Failure
}

// statusError is the StatusError of resp, with what its Retry-After asks for.
func statusError(resp *http.Response) error {
	var err error = &StatusError{resp.StatusCode, resp.Header}
	if d, ok := retryAfter(resp.Header.Get("Retry-After"), time.Now()); ok {
		err = sluice.WithRetryAfter(err, d)
	}
	return err
}

// maxRetryAfter bounds what an upstream can ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads the value of a Retry-After header: seconds, or a date in one of
// HTTP's three forms. ok is false if it asks for no time at all, or is not valid.
func retryAfter(value string, now time.Time) (d time.Duration, ok bool) {
	if value == "" {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.Atoi(value)
		if err != nil || seconds > int(maxRetryAfter/time.Second) { // the error can only be an overflow
			return maxRetryAfter, true
		}
		d = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(value); err == nil {
		d = min(date.Sub(now), maxRetryAfter)
	}
	return d, d > 0
}

// faultOfCaller reports whether a call ended with err for a reason that lies with
// its caller and that no context tells.
func faultOfCaller(req, sent *http.Request, err error) bool {
	if u, ok := sent.Body.(*upload); ok && u.broken.Load() {
		return true
	}
	return withdrawn(req) || malformed(req, err) || unkept(req, err)
}

// withdrawn reports whether the request was cancelled in the way that was there
// before contexts. An http.Client with a Timeout uses it too, at the deadline that
// it also gives to the context; that is a call that took too long.
func withdrawn(req *http.Request) bool {
	//lint:ignore SA1019 old clients, and http.Client itself, still use it
	cancel := req.Cancel
	select {
	case <-cancel:
		deadline, ok := req.Context().Deadline()
		return !ok || time.Now().Before(deadline)
	default:
		return false
	}
}

// malformed reports whether no server could have answered the request. The errors
// of net/http for it have no type, so the request is looked at.
func malformed(req *http.Request, err error) bool {
	scheme := req.URL.Scheme
	if scheme != "http" && scheme != "https" {
		// A base may know more schemes, and then its errors are like any other.
		return strings.Contains(err.Error(), "unsupported protocol scheme")
	}
	return req.URL.Host == "" || req.Header == nil ||
		req.Method != "" && !isToken(req.Method) ||
		!validFields(req.Header) || !validFields(req.Trailer)
}

// unkept reports whether the body of the request was not of the length that was
// promised. Of a body that is not watched, since it is in memory, only net/http knows,
// and it tells unless the end of the connection was faster.
func unkept(req *http.Request, err error) bool {
	switch {
	case req.ContentLength <= 0:
		return false
	case req.Body == nil || req.Body == http.NoBody:
		return true
	}
	text := err.Error()
	return strings.HasPrefix(text, "http: ContentLength=") ||
		strings.HasPrefix(text, "http2: request body larger than specified content length")
}

// validFields reports whether all names are tokens and no value holds a control
// character.
func validFields(h http.Header) bool {
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	for name, values := range h {
		if !isToken(name) {
			return false
		}
		for _, v := range values {
			if strings.ContainsFunc(v, control) {
				return false
			}
		}
	}
	return true
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	notAllowed := func(r rune) bool {
		alnum := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}
	return s != "" && !strings.ContainsFunc(s, notAllowed)
}
