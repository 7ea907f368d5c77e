package httpguard

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// everything is all that a Transport can do to a call that goes well.
func everything(b *breaker.Breaker) []Option {
	return []Option{
		WithBreaker(b), WithFinishAt(Body),
		WithAttemptTimeout(time.Minute), WithTotalTimeout(time.Hour), WithBodyIdleTimeout(time.Minute),
		WithFallback(func(_ *http.Request, cause error) (*http.Response, error) { return nil, cause }),
	}
}

// Each event of a stream arrives when it is sent, and the call is judged long before
// the stream is over.
func TestC09_EventsArriveOneByOne(t *testing.T) {
	next := make(chan string)
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case event := <-next:
				_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		b := neverTrips(t)
		tr := newTransport(t, base, everything(b)...)
		ctx, leave := context.WithCancel(t.Context())
		resp, err := tr.RoundTrip(getFrom(t, ctx, srv.URL))
		require.NoError(t, err)
		assert.Equal(t, outcomes{success: 1}, outcomesOf(b), "with the stream still open")
		lines := bufio.NewReader(resp.Body)
		for _, event := range []string{"one", "two", "three"} {
			next <- event
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, "data: "+event+"\n", line)
			_, err = lines.ReadString('\n')
			require.NoError(t, err)
		}
		leave()
		_, err = lines.ReadString('\n')
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, outcomes{success: 1}, outcomesOf(b))
		assert.Zero(t, tr.Snapshot().BodyErrors, "who leaves breaks nothing")
	})
}

// A body that breaks off is a failure where that is asked for, and counted in any case.
func TestP4_BodiesThatBreakOff(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		for at, want := range map[Finish]outcomes{Headers: {success: 1}, Body: {failure: 1}} {
			b := neverTrips(t)
			tr := newTransport(t, base, append(everything(b), WithFinishAt(at))...)
			resp, err := tr.RoundTrip(getFrom(t, t.Context(), srv.URL))
			require.NoError(t, err)
			_, err = io.ReadAll(resp.Body)
			require.Error(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, want, outcomesOf(b))
			assert.EqualValues(t, 1, tr.Snapshot().BodyErrors)
		}
	})
}

// A client that asks first does not send a body that the server does not want, and one
// that is wanted arrives whole.
func TestContinue_IsWaitedForThroughTheTransport(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		base.ExpectContinueTimeout = time.Hour // nothing is sent on suspicion
		b := neverTrips(t)
		tr := newTransport(t, base, everything(b)...)
		for path, want := range map[string]struct {
			status int
			body   string
			read   int64
		}{
			"/refuse": {http.StatusExpectationFailed, "", 0},
			"/accept": {http.StatusOK, "the body", 8},
		} {
			req := getFrom(t, t.Context(), srv.URL+path)
			req.Method = http.MethodPost
			req.Header.Set("Expect", "100-continue")
			sent := &meteredBody{Reader: strings.NewReader("the body")}
			req.Body, req.ContentLength = sent, 8
			resp, err := tr.RoundTrip(req)
			require.NoError(t, err)
			assert.Equal(t, want.status, resp.StatusCode)
			assert.Equal(t, want.body, readAll(t, resp))
			assert.Equal(t, want.read, sent.read.Load(), path)
		}
		assert.Equal(t, outcomes{success: 2}, outcomesOf(b))
	})
}

// meteredBody counts what is read of it.
type meteredBody struct {
	io.Reader
	read atomic.Int64
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read.Add(int64(n))
	return n, err
}

func (b *meteredBody) Close() error { return nil }

// Nothing is collected in memory on the way: what the client has written arrives before
// it has written the rest, and the answer to it comes back.
func TestC03_UploadsAreStreamed(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 always is
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
		}
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		b := neverTrips(t)
		body, client := io.Pipe()
		req := getFrom(t, t.Context(), srv.URL)
		req.Method, req.Body, req.ContentLength = http.MethodPost, body, -1
		resp, err := newTransport(t, base, everything(b)...).RoundTrip(req)
		require.NoError(t, err)
		answers := bufio.NewReader(resp.Body)
		for _, line := range []string{"one\n", "two\n"} {
			_, err = io.WriteString(client, line)
			require.NoError(t, err)
			answer, err := answers.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, line, answer)
		}
		require.NoError(t, client.Close())
		_, err = answers.ReadString('\n')
		assert.Equal(t, io.EOF, err)
		assert.Equal(t, outcomes{success: 1}, outcomesOf(b))
	})
}

// Whatever is not retried is sent once: a POST that fails is not sent again, whether it
// could be or not.
func TestC04_NothingIsSentTwice(t *testing.T) {
	var calls atomic.Int32
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusServiceUnavailable)
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		calls.Store(0)
		client := &http.Client{Transport: newTransport(t, base, everything(neverTrips(t))...)}
		resp, err := client.Post(srv.URL, "text/plain", strings.NewReader("body"))
		require.NoError(t, err)
		assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		assert.Empty(t, readAll(t, resp))
		assert.EqualValues(t, 1, calls.Load())
	})
}

// Redirects and cookies belong above a RoundTripper: go-retryablehttp 0.7.8 follows a
// redirect within RoundTrip and returns the 200 behind it.
func TestC19_RedirectsAreNotFollowed(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		b := neverTrips(t)
		resp, err := newTransport(t, base, everything(b)...).RoundTrip(getFrom(t, t.Context(), srv.URL))
		require.NoError(t, err)
		assert.Equal(t, http.StatusFound, resp.StatusCode)
		assert.Equal(t, "/elsewhere", resp.Header.Get("Location"))
		readAll(t, resp)
		assert.Equal(t, outcomes{success: 1}, outcomesOf(b))
	})
}

// The caller's trace sees all of the call, early hints too, though its context is
// another one further in.
func TestC24_TraceOfTheCallerIsKept(t *testing.T) {
	overBoth(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "body")
	}, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		var seen []string
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn:              func(httptrace.GotConnInfo) { seen = append(seen, "connection") },
			GotFirstResponseByte: func() { seen = append(seen, "first byte") },
			Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
				seen = append(seen, fmt.Sprint(code, header.Get("Link")))
				return nil
			},
		})
		b := neverTrips(t)
		resp, err := newTransport(t, base, everything(b)...).RoundTrip(getFrom(t, ctx, srv.URL))
		require.NoError(t, err)
		assert.Equal(t, "body", readAll(t, resp))
		assert.Equal(t, outcomes{success: 1}, outcomesOf(b), "the final status is the one that counts")
		assert.Equal(t, []string{"connection", "first byte", "103</style.css>; rel=preload"}, seen)
	})
}

// A call that is the probe of a breaker says so further in, whatever else is derived.
func TestProbe_IsMarkedUnderEverything(t *testing.T) {
	b := openBreaker(t, time.Nanosecond)
	var probe, deadline bool
	tr := newTransport(t, baseFunc(func(req *http.Request) (*http.Response, error) {
		probe = sluice.IsProbe(req.Context())
		_, deadline = req.Context().Deadline()
		return answering(200, "")(req)
	}), everything(b)...)
	resp, err := tr.RoundTrip(get(t.Context()))
	require.NoError(t, err)
	assert.True(t, probe)
	assert.True(t, deadline)
	assert.Equal(t, breaker.Closed, b.State())
	readAll(t, resp)
}
