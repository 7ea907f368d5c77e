package httpguard

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/breaker"
)

// baseFunc makes a function a RoundTripper.
type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// answering is a base that keeps the contract and always answers the same.
func answering(status int, body string) baseFunc {
	return func(req *http.Request) (*http.Response, error) {
		closeBody(req.Body)
		return response(req, status, body), nil
	}
}

// failing is a base that keeps the contract and always fails.
func failing(err error) baseFunc {
	return func(req *http.Request) (*http.Response, error) {
		closeBody(req.Body)
		return nil, err
	}
}

// hanging is a base that returns only when the request's context is done.
func hanging(req *http.Request) (*http.Response, error) {
	closeBody(req.Body)
	<-req.Context().Done()
	return nil, req.Context().Err()
}

func response(req *http.Request, status int, body string) *http.Response {
	return &http.Response{
		Status:     http.StatusText(status),
		StatusCode: status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{},
		Body:          &watchedBody{Reader: strings.NewReader(body)},
		ContentLength: int64(len(body)),
		Request:       req,
	}
}

// watchedBody counts how often it is closed. It is not http.NoBody and has no
// GetBody, so it is a body like one of a proxy's client.
type watchedBody struct {
	io.Reader
	closes atomic.Int32
}

func (b *watchedBody) Close() error {
	b.closes.Add(1)
	return nil
}

func newTransport(t testing.TB, base http.RoundTripper, opts ...Option) *Transport {
	t.Helper()
	tr, err := NewTransport(base, opts...)
	require.NoError(t, err)
	return tr
}

func newBreaker(t testing.TB, opts ...breaker.Option) *breaker.Breaker {
	t.Helper()
	b, err := breaker.New("upstream", append([]breaker.Option{breaker.WithJitter(0)}, opts...)...)
	require.NoError(t, err)
	return b
}

func openBreaker(t testing.TB, d time.Duration, opts ...breaker.Option) *breaker.Breaker {
	t.Helper()
	b := newBreaker(t, opts...)
	require.NoError(t, b.Trip(d))
	return b
}

func newGroup(t testing.TB, opts ...breaker.Option) *breaker.Group {
	t.Helper()
	g, err := breaker.NewGroup("upstream", opts...)
	require.NoError(t, err)
	return g
}

// get is a request that a base needs nothing of its own for.
func get(ctx context.Context) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://upstream.test/path?q=1", nil)
	if err != nil {
		panic(err)
	}
	return req
}

// post is a request whose body cannot be had a second time.
func post(ctx context.Context, body string) (*http.Request, *watchedBody) {
	req := get(ctx)
	req.Method = http.MethodPost
	watched := &watchedBody{Reader: strings.NewReader(body)}
	req.Body, req.ContentLength = watched, int64(len(body))
	return req, watched
}

func readAll(t testing.TB, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(body)
}

// overBoth runs a test against real servers, one of HTTP/1.1 and one of HTTP/2.
func overBoth(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, srv *httptest.Server, base *http.Transport)) {
	for name, h2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(handler)
			if h2 {
				srv.EnableHTTP2 = true
				srv.StartTLS()
			} else {
				srv.Start()
			}
			t.Cleanup(srv.Close)
			base := srv.Client().Transport.(*http.Transport)
			test(t, srv, base)
		})
	}
}

// overBothInABubble is overBoth in virtual time: the same implementations of HTTP/1.1
// and HTTP/2, over pipes, since sockets cannot be in a bubble.
func overBothInABubble(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, base *http.Transport)) {
	for name, h2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var protocols http.Protocols
				protocols.SetHTTP1(!h2)
				protocols.SetUnencryptedHTTP2(h2)
				pipes := &pipeListener{dialled: make(chan net.Conn), closed: make(chan struct{})}
				srv := &http.Server{Handler: handler, Protocols: &protocols}
				go func() { _ = srv.Serve(pipes) }()
				base := &http.Transport{Protocols: &protocols, DialContext: pipes.dial}
				test(t, base)
				base.CloseIdleConnections()
				_ = srv.Close()
			})
		})
	}
}

// pipeListener accepts what is dialled, by requests and by those that net/http makes in
// advance.
type pipeListener struct {
	dialled chan net.Conn
	closed  chan struct{} // by the server, once
}

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.dialled <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.dialled:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { close(l.closed); return nil }

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func getFrom(t testing.TB, ctx context.Context, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	return req
}
