package httpguard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// counted is how a breaker's totals changed by one call through tr.
func counted(t *testing.T, b *breaker.Breaker, tr *Transport, req *http.Request) string {
	t.Helper()
	before := b.Snapshot().Totals
	if resp, err := tr.RoundTrip(req); err == nil {
		_ = resp.Body.Close()
	}
	after := b.Snapshot().Totals
	var changed []string
	for name, n := range map[string]int64{
		"success":   after.Success - before.Success,
		"failure":   after.Failure - before.Failure,
		"throttled": after.Throttled - before.Throttled,
		"ignored":   after.Ignored - before.Ignored,
	} {
		if n != 0 {
			changed = append(changed, name)
			assert.EqualValues(t, 1, n)
		}
	}
	return strings.Join(changed, "+")
}

// neverTrips counts and never opens.
func neverTrips(t testing.TB) *breaker.Breaker {
	return newBreaker(t, breaker.WithErrorCount(1<<30))
}

func TestC16_OutcomeByStatus(t *testing.T) {
	want := map[int]string{429: "throttled", 501: "success", 505: "success", 511: "success"}
	for status := -1; status <= 999; status++ {
		o := statusOutcome(status)
		expected := want[status]
		switch {
		case expected != "":
		case status >= 500, status < 200 && status != 101: // net/http takes a server's word for "000"
			expected = "failure"
		default:
			expected = "success"
		}
		assert.Equalf(t, expected, o.String(), "%d", status)
	}
	b := neverTrips(t)
	for status, expected := range map[int]string{
		200: "success", 302: "success", 404: "success", 408: "success", 429: "throttled",
		500: "failure", 501: "success", 502: "failure", 503: "failure", 504: "failure", 505: "success", 507: "failure", 511: "success",
	} {
		for _, opts := range [][]Option{{WithBreaker(b)}, {WithBreaker(b), WithAttemptTimeout(time.Hour)}} {
			tr := newTransport(t, answering(status, "body"), opts...)
			assert.Equal(t, expected, counted(t, b, tr, get(t.Context())), "%d", status)
		}
	}
}

type netTimeout struct{}

func (netTimeout) Error() string   { return "i/o timeout" }
func (netTimeout) Timeout() bool   { return true }
func (netTimeout) Temporary() bool { return true }

// Who ended the call decides, whatever the error says.
func TestC15_OutcomeByWhoEndedTheCall(t *testing.T) {
	inner := newTransport(t, answering(200, ""), WithBreaker(openBreaker(t, time.Hour)))
	for name, c := range map[string]struct {
		base baseFunc
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		req  func(*http.Request)
		want string
	}{
		"connection refused": {base: failing(errors.New("connection refused")), want: "failure"},
		"network timeout":    {base: failing(netTimeout{}), want: "failure"},
		"unexpected EOF":     {base: failing(io.ErrUnexpectedEOF), want: "failure"},
		"cancelled further in, by no caller of ours": {base: failing(context.Canceled), want: "failure"},
		"attempt timeout": {base: hanging, want: "failure"},
		"caller cancelled": {base: hanging, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, want: "ignored"},
		"caller cancelled, and the error lies": {base: func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, errors.New("connection reset")
		}, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, want: "ignored"},
		"sibling failed": {base: hanging, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(errors.New("sibling failed")) })
			return ctx, func() { cancel(nil) }
		}, want: "ignored"},
		"limit of ours further out": {base: hanging, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(sluice.ErrTimeout) })
			return ctx, func() { cancel(nil) }
		}, want: "failure"},
		"caller's own deadline": {base: hanging, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, want: "failure"},
		"refused further in":           {base: inner.RoundTrip, want: "ignored"},
		"no host":                      {base: failing(errors.New("http: no Host in request URL")), req: func(r *http.Request) { r.URL.Host = "" }, want: "ignored"},
		"no header":                    {base: failing(errors.New("http: nil Request.Header")), req: func(r *http.Request) { r.Header = nil }, want: "ignored"},
		"invalid method":               {base: failing(errors.New("x")), req: func(r *http.Request) { r.Method = "GE T" }, want: "ignored"},
		"invalid header name":          {base: failing(errors.New("x")), req: func(r *http.Request) { r.Header["a b"] = []string{"v"} }, want: "ignored"},
		"invalid header value":         {base: failing(errors.New("x")), req: func(r *http.Request) { r.Header["A"] = []string{"a\r\nb"} }, want: "ignored"},
		"invalid trailer":              {base: failing(errors.New("x")), req: func(r *http.Request) { r.Trailer = http.Header{"": nil} }, want: "ignored"},
		"odd but valid":                {base: failing(errors.New("x")), req: func(r *http.Request) { r.Method = "M-SEARCH"; r.Header["A_b"] = []string{"a\tb ü"} }, want: "failure"},
		"unsupported scheme":           {base: failing(errors.New(`unsupported protocol scheme "ftp"`)), req: func(r *http.Request) { r.URL.Scheme = "ftp" }, want: "ignored"},
		"a scheme that the base knows": {base: failing(errors.New("no such socket")), req: func(r *http.Request) { r.URL.Scheme = "unix" }, want: "failure"},
		"withdrawn in the old way": {base: failing(errors.New("net/http: request canceled")), req: func(r *http.Request) {
			gone := make(chan struct{})
			close(gone)
			//lint:ignore SA1019 it is still there
			r.Cancel = gone
		}, want: "ignored"},
		"body breaks off": {base: func(req *http.Request) (*http.Response, error) {
			_, err := io.Copy(io.Discard, req.Body)
			closeBody(req.Body)
			return nil, err
		}, req: func(r *http.Request) {
			r.Method, r.ContentLength = http.MethodPost, 9
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader("123"), errReader{io.ErrUnexpectedEOF}))
		}, want: "ignored"},
		"body breaks off, answered": {base: func(req *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, req.Body)
			return answering(400, "truncated")(req)
		}, req: func(r *http.Request) {
			r.Method, r.ContentLength = http.MethodPost, 9
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader("123"), errReader{io.ErrUnexpectedEOF}))
		}, want: "success"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := neverTrips(t)
				tr := newTransport(t, c.base, WithBreaker(b), WithAttemptTimeout(time.Minute))
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.ctx != nil {
					ctx, cancel = c.ctx(ctx)
				}
				defer cancel()
				req := get(ctx)
				if c.req != nil {
					c.req(req)
				}
				assert.Equal(t, c.want, counted(t, b, tr, req))
			})
		})
	}
}

// The limit ended the call; that the caller leaves in the same moment changes
// nothing.
func TestC15_AttemptTimeoutBeforeTheCallerLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := neverTrips(t)
		tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			cancel()
			return nil, req.Context().Err()
		}), WithBreaker(b), WithAttemptTimeout(time.Second))
		assert.Equal(t, "failure", counted(t, b, tr, get(ctx)))
	})
}

// And the other way round: a base that is slow to notice returns after the limit too.
func TestC15_CallerLeftBeforeTheAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		gone := errors.New("gone")
		tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			time.Sleep(time.Minute)
			return nil, gone
		}), WithAttemptTimeout(2*time.Second))
		_, err := tr.RoundTrip(get(ctx))
		assert.Same(t, gone, err, "it was not our limit")
	})
}

// Seconds or a date, in the past, far off, garbage or too long for an integer: docker
// hub once made a client "retry in 484289h20m8s",
// https://github.com/hashicorp/go-retryablehttp/pull/248
func TestC17_RetryAfterIsReadInEveryFormAndBounded(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                                0,
		"0":                               0,
		"1":                               time.Second,
		"120":                             2 * time.Minute,
		"86400":                           maxRetryAfter,
		"86401":                           maxRetryAfter,
		"1743441608":                      maxRetryAfter,
		"99999999999999999999999999":      maxRetryAfter,
		"-5":                              0,
		"+5":                              0,
		"1.5":                             0,
		"5 seconds":                       0,
		"soon":                            0,
		"Sun, 01 Mar 2026 12:01:30 GMT":   90 * time.Second, // IMF-fixdate
		"Sunday, 01-Mar-26 12:01:30 GMT":  90 * time.Second, // RFC 850
		"Sun Mar  1 12:01:30 2026":        90 * time.Second, // asctime
		"Sun, 01 Mar 2026 12:00:00 GMT":   0,
		"Sun, 01 Mar 2026 11:59:59 GMT":   0,
		"Wed, 21 Oct 2015 07:28:00 GMT":   0,
		"Fri, 31 Dec 9999 23:59:59 GMT":   maxRetryAfter,
		"Sun, 01 Mar 2026 12:01:30 +0100": 0, // not a date of HTTP
	} {
		d, ok := retryAfter(value, now)
		assert.Equalf(t, want > 0, ok, "%q", value)
		if ok {
			assert.Equalf(t, want, d, "%q", value)
		}
	}
}

func TestClassifier_DecidesUnlessItHasNoOpinion(t *testing.T) {
	b := neverTrips(t)
	var asked int
	var say sluice.Outcome
	classify := WithClassifier(func(_ *http.Request, resp *http.Response, err error) sluice.Outcome {
		asked++
		assert.NotEqual(t, resp == nil, err == nil, "either a response or an error")
		return say
	})
	broken := failing(io.ErrUnexpectedEOF)
	for _, c := range []struct {
		say       sluice.Outcome
		base      baseFunc
		want      string
		condition string
	}{
		{0, answering(200, ""), "success", "no opinion on a response"},
		{0, broken, "failure", "no opinion on an error"},
		{sluice.Failure, answering(404, ""), "failure", "a 404 that is one"},
		{sluice.Success, answering(500, ""), "success", "a 500 that is none"},
		{sluice.Ignored, answering(500, ""), "ignored", ""},
		{sluice.Throttled, answering(503, ""), "throttled", ""},
		{sluice.Success, broken, "success", "an error that is an answer"},
		{sluice.Ignored, broken, "ignored", ""},
		{sluice.Throttled, broken, "throttled", ""},
	} {
		say = c.say
		tr := newTransport(t, c.base, WithBreaker(b), classify)
		assert.Equal(t, c.want, counted(t, b, tr, get(t.Context())), "%v %s", c.say, c.condition)
	}
	assert.Equal(t, 9, asked)

	say = sluice.Failure
	inner := newTransport(t, answering(200, ""), WithBreaker(openBreaker(t, time.Hour)))
	tr := newTransport(t, inner, WithBreaker(b), classify)
	assert.Equal(t, "ignored", counted(t, b, tr, get(t.Context())), "a local refusal is nobody's opinion")
	assert.Equal(t, 9, asked)
}

// A breaker's own classifier hears of responses too, and may open at once.
func TestBreakersClassifier_SeesStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.WithClassifier(func(_ context.Context, err error) breaker.Verdict {
			var status *StatusError
			if errors.As(err, &status) && status.Code == 503 {
				d, _ := sluice.RetryAfter(err)
				return breaker.Verdict{TripFor: d}
			}
			return breaker.Verdict{}
		}))
		tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
			resp := response(req, 503, "")
			resp.Header.Set("Retry-After", "30")
			return resp, nil
		}), WithBreaker(b))
		_, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		assert.Equal(t, breaker.Open, b.State())
		assert.Equal(t, 30*time.Second, b.Snapshot().OpenFor)
	})
}

func TestStatusError_SaysTheStatus(t *testing.T) {
	assert.EqualError(t, &StatusError{Code: 503}, "httpguard: status 503 Service Unavailable")
	assert.EqualError(t, &StatusError{Code: 599}, "httpguard: status 599")
}

// net/http itself is asked, so that the look at the request agrees with it.
func TestMalformed_AgreesWithNetHTTP(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	for name, change := range map[string]func(*http.Request){
		"fine":             func(*http.Request) {},
		"empty method":     func(r *http.Request) { r.Method = "" },
		"method":           func(r *http.Request) { r.Method = "a(b" },
		"method not ASCII": func(r *http.Request) { r.Method = "GÉT" },
		"name":             func(r *http.Request) { r.Header["a:b"] = []string{"x"} },
		"empty name":       func(r *http.Request) { r.Header[""] = []string{"x"} },
		"value":            func(r *http.Request) { r.Header["A"] = []string{"ok", "x\x00"} },
		"value DEL":        func(r *http.Request) { r.Header["A"] = []string{"\x7f"} },
		"value tab":        func(r *http.Request) { r.Header["A"] = []string{"a\tb"} },
		"value latin":      func(r *http.Request) { r.Header["A"] = []string{"\xfc"} },
		"trailer":          func(r *http.Request) { r.Trailer = http.Header{"A": {"\n"}} },
		"no host":          func(r *http.Request) { r.URL.Host = "" },
		"scheme":           func(r *http.Request) { r.URL.Scheme = "gopher" },
		"no scheme":        func(r *http.Request) { r.URL.Scheme = "" },
		"nil header":       func(r *http.Request) { r.Header = nil },
	} {
		req := getFrom(t, t.Context(), srv.URL)
		change(req)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			readAll(t, resp)
		}
		assert.Equal(t, err != nil, malformed(req, fmt.Errorf("%w", errOr(err))), "%s: %v", name, err)
	}
}

func errOr(err error) error {
	if err == nil {
		return errors.New("some other reason")
	}
	return err
}
