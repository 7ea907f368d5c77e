package retry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/retry"
)

// transport repeats requests. It is here to show that the steps are enough for that: a
// response is not an error, an abandoned one is closed before the wait, a body is sent
// again from GetBody, and the ctx of an attempt ends when the body of its response is
// closed.
type transport struct {
	base   http.RoundTripper
	policy *retry.Policy
	hedger *retry.Hedger
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	a, err := t.policy.Begin(ctx)
	if err != nil {
		req.Body.Close()
		return nil, err
	}
	for {
		attempt, end := a.Context(ctx)
		sent := req.WithContext(attempt)
		if a.Made() > 0 && req.GetBody != nil {
			if sent.Body, err = req.GetBody(); err != nil {
				end()
				return nil, err
			}
		}
		resp, err := t.send(sent)
		if resp != nil {
			resp.Body = &body{resp.Body, end}
		} else {
			end()
		}
		verdict := judge(resp, err)
		if !repeatable(req) {
			a.Done(verdict)
			return resp, err
		}
		wait, again := a.Next(ctx, verdict)
		if !again && resp != nil { // the last response is the caller's, whatever it says
			return resp, nil
		}
		if !again {
			return nil, a.Err()
		}
		if resp != nil {
			resp.Body.Close()
		}
		if !a.Wait(ctx, wait) {
			return nil, a.Err()
		}
	}
}

// send makes one attempt, with a hedge if there is a hedger.
func (t *transport) send(req *http.Request) (*http.Response, error) {
	if t.hedger == nil {
		return t.base.RoundTrip(req)
	}
	return retry.Hedge(req.Context(), t.hedger,
		func(ctx context.Context) (*http.Response, error) { return t.base.RoundTrip(req.WithContext(ctx)) },
		func(lost *http.Response) { lost.Body.Close() })
}

// body ends the ctx of its attempt.
type body struct {
	io.ReadCloser
	end func()
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// repeatable is what the caller decides, and no policy can know.
func repeatable(req *http.Request) bool {
	sendable := req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
	return sendable && (req.Method != http.MethodPost || req.Header.Get("Idempotency-Key") != "")
}

// judge makes an error of a response.
func judge(resp *http.Response, err error) error {
	if err != nil || resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
		return err
	}
	err = fmt.Errorf("status %d", resp.StatusCode)
	if resp.StatusCode == http.StatusTooManyRequests {
		err = sluice.Mark(err, sluice.Throttled)
	}
	if seconds, bad := strconv.Atoi(resp.Header.Get("Retry-After")); bad == nil {
		err = sluice.WithRetryAfter(err, time.Duration(seconds)*time.Second)
	}
	return err
}

// server answers in memory: each request by the next answer, the last over and over.
type server struct {
	answers []answer
	mu      sync.Mutex
	began   time.Time
	got     []string        // bodies
	at      []time.Duration // when they came
	open    int             // responses whose body is not closed
}

type answer struct {
	status     int
	retryAfter string
	err        error
	hangs      bool // until the ctx ends
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := ""
	if req.Body != nil {
		all, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		sent = string(all)
		req.Body.Close()
	}
	s.mu.Lock()
	a := s.answers[min(len(s.got), len(s.answers)-1)]
	s.got, s.at = append(s.got, sent), append(s.at, time.Since(s.began))
	s.mu.Unlock()
	if a.hangs {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	s.mu.Lock()
	s.open++
	s.mu.Unlock()
	header := http.Header{}
	if a.retryAfter != "" {
		header.Set("Retry-After", a.retryAfter)
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: &stream{s, req.Context(), strings.NewReader("hello")}}, nil
}

// stream is a body that breaks off when the ctx of its request has ended.
type stream struct {
	s   *server
	ctx context.Context
	r   io.Reader
}

func (b *stream) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.r.Read(p)
}

func (b *stream) Close() error {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	b.s.open--
	return nil
}

const tick = time.Millisecond

func TestTransport(t *testing.T) {
	errReset := errors.New("connection reset")
	type want struct {
		status int
		err    error
		at     []time.Duration
	}
	now, second, third := time.Duration(0), 50*tick, 150*tick
	for name, c := range map[string]struct {
		method  string
		key     bool
		noBody  bool // without GetBody
		answers []answer
		want    want
	}{
		"answers at once":           {"GET", false, false, []answer{{status: 200}}, want{200, nil, []time.Duration{now}}},
		"comes back":                {"PUT", false, false, []answer{{status: 503}, {err: errReset}, {status: 200}}, want{200, nil, []time.Duration{now, second, third}}},
		"stays down":                {"PUT", false, false, []answer{{status: 503}}, want{503, nil, []time.Duration{now, second, third}}},
		"resets":                    {"PUT", false, false, []answer{{err: errReset}}, want{0, errReset, []time.Duration{now, second, third}}},
		"does not know it":          {"GET", false, false, []answer{{status: 404}}, want{404, nil, []time.Duration{now}}},
		"a POST is made once":       {"POST", false, false, []answer{{status: 503}, {status: 200}}, want{503, nil, []time.Duration{now}}},
		"a POST with a key is not":  {"POST", true, false, []answer{{status: 503}, {status: 200}}, want{200, nil, []time.Duration{now, second}}},
		"a body that is there once": {"PUT", false, true, []answer{{status: 503}, {status: 200}}, want{503, nil, []time.Duration{now}}},
		"asks for two seconds":      {"GET", false, false, []answer{{status: 429, retryAfter: "2"}, {status: 200}}, want{200, nil, []time.Duration{now, 2*time.Second + second}}},
		"asks for an hour":          {"GET", false, false, []answer{{status: 429, retryAfter: "3600"}, {status: 200}}, want{429, nil, []time.Duration{now}}},
		"hangs":                     {"GET", false, false, []answer{{hangs: true}, {status: 200}}, want{200, nil, []time.Duration{now, time.Second + second}}},
	} {
		for _, hedged := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, hedged: %v", name, hedged), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					base := &server{answers: c.answers, began: time.Now()}
					policy, err := retry.New("upstream", retry.WithJitter(0), retry.WithAttemptTimeout(time.Second))
					require.NoError(t, err)
					tr := &transport{base: base, policy: policy}
					if hedged { // after the limit of an attempt, so that it does not change what comes out
						tr.hedger = sluice.Must(retry.NewHedger("upstream", 2*time.Second, retry.WithHedgeBudget(policy.Budget())))
					}
					req, err := http.NewRequestWithContext(t.Context(), c.method, "http://upstream/", bytes.NewReader([]byte("order")))
					require.NoError(t, err)
					if c.noBody {
						req.GetBody = nil
					}
					if c.key {
						req.Header.Set("Idempotency-Key", "1")
					}
					resp, err := tr.RoundTrip(req)
					assert.Equal(t, c.want.at, base.at)
					for _, got := range base.got {
						assert.Equal(t, "order", got, "each attempt sends the whole body")
					}
					assert.EqualValues(t, 1, policy.Budget().Snapshot().Deposits)
					if c.want.err != nil {
						assert.Nil(t, resp)
						assert.ErrorIs(t, err, c.want.err)
						assert.Zero(t, base.open)
						return
					}
					require.NoError(t, err)
					assert.Equal(t, c.want.status, resp.StatusCode)
					assert.Equal(t, 1, base.open, "every other response was closed")
					all, err := io.ReadAll(resp.Body)
					assert.NoError(t, err, "its ctx is alive")
					assert.Equal(t, "hello", string(all))
					require.NoError(t, resp.Body.Close())
					assert.Zero(t, base.open)
				})
			})
		}
	}
}

// The caller goes away during a wait: nothing is left open, and the error tells both.
func TestTransport_CallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &server{answers: []answer{{status: 503}}, began: time.Now()}
		policy, err := retry.New("upstream", retry.WithJitter(0))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*tick, cancel)
		req, err := http.NewRequestWithContext(ctx, "GET", "http://upstream/", nil)
		require.NoError(t, err)
		resp, err := (&transport{base: base, policy: policy}).RoundTrip(req)
		assert.Nil(t, resp)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, "status 503")
		assert.Equal(t, 20*tick, time.Since(base.began))
		assert.Zero(t, base.open)
	})
}

// The second of two requests wins: the first is cancelled, and the body of the second
// can be read to its end, however late.
func TestTransport_Hedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &server{answers: []answer{{hangs: true}, {status: 200}}, began: time.Now()}
		tr := &transport{base: base, hedger: sluice.Must(retry.NewHedger("upstream", 30*tick))}
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://upstream/", nil)
		require.NoError(t, err)
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, 30 * tick}, base.at)
		time.Sleep(time.Hour)
		all, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, "hello", string(all))
		require.NoError(t, resp.Body.Close())
		assert.Zero(t, base.open)
	})
}
