package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// The shapes of net/http, which a room of this house does not know.
type (
	request struct {
		ctx     context.Context
		method  string
		key     string // by which a POST is known again
		body    io.ReadCloser
		getBody func() io.ReadCloser // nil if the body is there once
	}
	response struct {
		status     int
		retryAfter string // seconds
		body       io.ReadCloser
	}
	roundTripper interface {
		roundTrip(*request) (*response, error)
	}
)

// with returns the request as it is sent in an attempt.
func (r request) with(ctx context.Context) *request {
	r.ctx = ctx
	return &r
}

// transport repeats requests. It is here to show that the steps are enough for that: a
// response is not an error, an abandoned one is closed before the wait, a body is sent
// again from getBody, and the ctx of an attempt ends when the body of its response is
// closed.
type transport struct {
	base   roundTripper
	policy *retry.Policy
	hedger *retry.Hedger
}

func (t *transport) roundTrip(req *request) (*response, error) {
	a, err := t.policy.Begin(req.ctx)
	if err != nil {
		req.body.Close()
		return nil, err
	}
	for {
		ctx, end := a.Context(req.ctx)
		sent := req.with(ctx)
		if a.Made() > 0 {
			sent.body = req.getBody()
		}
		resp, err := t.send(sent)
		if resp != nil {
			resp.body = &body{resp.body, end}
		} else {
			end()
		}
		verdict := judge(resp, err)
		if !repeatable(req) {
			a.Done(verdict)
			return resp, err
		}
		wait, again := a.Next(req.ctx, verdict)
		switch {
		case !again && resp != nil: // the last response is the caller's, whatever it says
			return resp, nil
		case !again:
			return nil, a.Err()
		case resp != nil:
			resp.body.Close()
		}
		if !a.Wait(req.ctx, wait) {
			return nil, a.Err()
		}
	}
}

// send makes one attempt, with a hedge if there is a hedger.
func (t *transport) send(req *request) (*response, error) {
	if t.hedger == nil {
		return t.base.roundTrip(req)
	}
	return retry.Hedge(req.ctx, t.hedger,
		func(ctx context.Context) (*response, error) {
			sent := req.with(ctx)
			if retry.AttemptOf(ctx) > 1 && req.getBody != nil {
				sent.body = req.getBody()
			}
			return t.base.roundTrip(sent)
		},
		func(lost *response) { lost.body.Close() })
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
func repeatable(req *request) bool {
	return req.getBody != nil && (req.method != "POST" || req.key != "")
}

// judge makes an error of a response.
func judge(resp *response, err error) error {
	if err != nil || resp.status < 500 && resp.status != 429 {
		return err
	}
	err = fmt.Errorf("status %d", resp.status)
	if resp.status == 429 {
		err = sluice.Mark(err, sluice.Throttled)
	}
	if seconds, bad := strconv.Atoi(resp.retryAfter); bad == nil {
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

func (s *server) roundTrip(req *request) (*response, error) {
	sent, err := io.ReadAll(req.body)
	if err != nil {
		return nil, err
	}
	req.body.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answers[min(len(s.got), len(s.answers)-1)]
	s.got, s.at = append(s.got, string(sent)), append(s.at, time.Since(s.began))
	if a.hangs {
		s.mu.Unlock()
		<-req.ctx.Done()
		s.mu.Lock()
		return nil, req.ctx.Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	s.open++
	return &response{a.status, a.retryAfter, &stream{s, req.ctx, strings.NewReader("hello")}}, nil
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

// order is the body of all requests.
func order() io.ReadCloser { return io.NopCloser(strings.NewReader("order")) }

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
		key     string
		once    bool // the body is there once
		answers []answer
		want    want
	}{
		"answers at once":           {"GET", "", false, []answer{{status: 200}}, want{200, nil, []time.Duration{now}}},
		"comes back":                {"PUT", "", false, []answer{{status: 503}, {err: errReset}, {status: 200}}, want{200, nil, []time.Duration{now, second, third}}},
		"stays down":                {"PUT", "", false, []answer{{status: 503}}, want{503, nil, []time.Duration{now, second, third}}},
		"resets":                    {"PUT", "", false, []answer{{err: errReset}}, want{0, errReset, []time.Duration{now, second, third}}},
		"does not know it":          {"GET", "", false, []answer{{status: 404}}, want{404, nil, []time.Duration{now}}},
		"a POST is made once":       {"POST", "", false, []answer{{status: 503}, {status: 200}}, want{503, nil, []time.Duration{now}}},
		"a POST with a key is not":  {"POST", "1", false, []answer{{status: 503}, {status: 200}}, want{200, nil, []time.Duration{now, second}}},
		"a body that is there once": {"PUT", "", true, []answer{{status: 503}, {status: 200}}, want{503, nil, []time.Duration{now}}},
		"asks for two seconds":      {"GET", "", false, []answer{{status: 429, retryAfter: "2"}, {status: 200}}, want{200, nil, []time.Duration{now, 2*time.Second + second}}},
		"asks for an hour":          {"GET", "", false, []answer{{status: 429, retryAfter: "3600"}, {status: 200}}, want{429, nil, []time.Duration{now}}},
		"hangs":                     {"GET", "", false, []answer{{hangs: true}, {status: 200}}, want{200, nil, []time.Duration{now, time.Second + second}}},
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
					req := &request{ctx: t.Context(), method: c.method, key: c.key, body: order(), getBody: order}
					if c.once {
						req.getBody = nil
					}
					resp, err := tr.roundTrip(req)
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
					assert.Equal(t, c.want.status, resp.status)
					assert.Equal(t, 1, base.open, "every other response was closed")
					all, err := io.ReadAll(resp.body)
					assert.NoError(t, err, "its ctx is alive")
					assert.Equal(t, "hello", string(all))
					require.NoError(t, resp.body.Close())
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
		resp, err := (&transport{base: base, policy: policy}).roundTrip(&request{ctx: ctx, method: "GET", body: order(), getBody: order})
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
		resp, err := tr.roundTrip(&request{ctx: t.Context(), method: "GET", body: order(), getBody: order})
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, 30 * tick}, base.at)
		time.Sleep(time.Hour)
		all, err := io.ReadAll(resp.body)
		require.NoError(t, err)
		assert.Equal(t, "hello", string(all))
		require.NoError(t, resp.body.Close())
		assert.Zero(t, base.open)
	})
}
