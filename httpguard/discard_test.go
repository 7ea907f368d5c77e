package httpguard

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// replacing serves a 200 in place of failures.
func replacing(opts ...Option) []Option {
	return append(opts, WithFallback(func(req *http.Request, _ error) (*http.Response, error) {
		return Respond(req, 200, nil, nil), nil
	}, OnFailure))
}

// failingWith is a base that answers 503 with a body.
func failingWith(body io.ReadCloser, length int64) baseFunc {
	return func(req *http.Request) (*http.Response, error) {
		resp := response(req, 503, "")
		resp.Body, resp.ContentLength = body, length
		return resp, nil
	}
}

// Draining is bounded, in bytes and in time.
func TestC05_DrainingIsBounded(t *testing.T) {
	for name, length := range map[string]int64{"too long": drainBytes + 1, "unknown": -1, "promised": drainBytes} {
		synctest.Test(t, func(t *testing.T) {
			var sent context.Context
			body := &countingBody{}
			base := baseFunc(func(req *http.Request) (*http.Response, error) {
				sent = req.Context()
				return failingWith(body, length)(req)
			})
			_, err := newTransport(t, base, replacing()...).RoundTrip(get(t.Context()))
			require.NoError(t, err)
			synctest.Wait()
			assert.LessOrEqual(t, body.read, int64(drainBytes), name)
			assert.Equal(t, length <= drainBytes, body.read > 0, name)
			assert.Equal(t, 1, body.closed, name)
			assert.ErrorIs(t, sent.Err(), context.Canceled, name)
		})
	}

	synctest.Test(t, func(t *testing.T) {
		var given *stalledBody
		base := baseFunc(func(req *http.Request) (*http.Response, error) {
			given = &stalledBody{ctx: req.Context()}
			return failingWith(given, -1)(req)
		})
		start := time.Now()
		_, err := newTransport(t, base, replacing()...).RoundTrip(get(t.Context()))
		require.NoError(t, err)
		assert.Zero(t, time.Since(start), "the caller need not wait for it")
		time.Sleep(drainFor)
		synctest.Wait()
		assert.True(t, given.closed)
	})

	stop := make(chan struct{})
	defer close(stop)
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(503)
		_, _ = io.WriteString(w, "and then")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-stop:
		}
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		_, err := newTransport(t, base, replacing()...).RoundTrip(getFrom(t, t.Context(), srv.URL))
		require.NoError(t, err)
	})
}

type countingBody struct {
	read   int64
	closed int
}

func (b *countingBody) Read(p []byte) (int, error) { b.read += int64(len(p)); return len(p), nil }
func (b *countingBody) Close() error               { b.closed++; return nil }

type stalledBody struct {
	ctx    context.Context
	closed bool
}

func (b *stalledBody) Read([]byte) (int, error) { <-b.ctx.Done(); return 0, b.ctx.Err() }
func (b *stalledBody) Close() error             { b.closed = true; return nil }

// A body of a foreign base may heed neither its context nor anything else. It may cost
// a goroutine, of which there is a bounded number, but it must not hold a caller who
// already has an answer; and since it need not stand a Close during a Read, it is closed
// by the one who reads it, once.
func TestC05_BodiesThatNeverEndHoldNobody(t *testing.T) {
	const limit = 3
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		var bodies []*deafBody
		base := baseFunc(func(req *http.Request) (*http.Response, error) {
			bodies = append(bodies, &deafBody{end: end})
			return failingWith(bodies[len(bodies)-1], -1)(req)
		})
		tr := newTransport(t, base, replacing(WithFallbackLimit(limit))...)
		start := time.Now()
		for range limit + 2 {
			resp, err := tr.RoundTrip(get(t.Context()))
			require.NoError(t, err)
			assert.Equal(t, 200, resp.StatusCode)
		}
		assert.Zero(t, time.Since(start))
		time.Sleep(time.Hour)
		for i, b := range bodies {
			assert.Equal(t, i >= limit, b.closed, "%d: those beyond the limit are closed unread", i)
		}
		close(end)
		synctest.Wait()
		for _, b := range bodies {
			assert.True(t, b.closed)
		}
		end = make(chan struct{})
		_, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		synctest.Wait()
		assert.False(t, bodies[len(bodies)-1].closed, "there is room again")
		close(end)
	})
}

// deafBody blocks for as long as it likes. Neither method is safe beside the other.
type deafBody struct {
	end    chan struct{}
	closed bool
}

func (b *deafBody) Read([]byte) (int, error) { <-b.end; return 0, io.EOF }
func (b *deafBody) Close() error             { b.closed = true; return nil }

// Where nobody stands above, a panic would end the process.
func TestC05_ABodyThatPanicsWhileItIsDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		body := &panickingBody{}
		tr := newTransport(t, failingWith(body, -1), replacing(WithName("orders"), WithLogger(slog.New(slog.NewTextHandler(&out, nil))))...)
		_, err := tr.RoundTrip(get(t.Context()))
		require.NoError(t, err)
		synctest.Wait()
		assert.True(t, body.closed)
		assert.EqualValues(t, 1, tr.Snapshot().BodyErrors)
		assert.Contains(t, out.String(), `level=ERROR msg="response body panicked" resource=orders panic=broken`)
	})
}

type panickingBody struct{ closed bool }

func (b *panickingBody) Read([]byte) (int, error) { panic("broken") }
func (b *panickingBody) Close() error             { b.closed = true; return nil }
