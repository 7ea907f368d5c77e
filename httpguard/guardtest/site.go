package guardtest

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
)

// site is a server on loopback, and a way to reach it that nothing is wrapped around.
type site struct {
	url  string // without a slash at its end
	base *http.Transport
	// How many connections the base has opened to the server, without those for
	// warm, written when it dials.
	dialled atomic.Int64
}

// serve starts a server that speaks the protocol of the check and no other one.
func (t *trial) serve(handler http.Handler) *site {
	var protocols http.Protocols
	protocols.SetHTTP1(t.protocol != HTTP2)
	protocols.SetUnencryptedHTTP2(t.protocol == HTTP2)
	listener := t.listen()
	server := &http.Server{Handler: handler, Protocols: &protocols, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }()
	t.cleanup(func() { _ = server.Close() })

	own := listener.Addr().String()
	s := &site{url: "http://" + own}
	dialer := &net.Dialer{}
	s.base = &http.Transport{Protocols: &protocols, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == own && ctx.Value(warming{}) == nil {
			s.dialled.Add(1)
		}
		return dialer.DialContext(ctx, network, addr)
	}}
	t.cleanup(s.base.CloseIdleConnections)
	return s
}

// warming marks the requests of warm.
type warming struct{}

// warm has the base keep a connection to the server that the next call reuses. After
// a first call it need not: net/http puts an HTTP/2 connection into its pool from the
// goroutine that has dialled it, some time after the call got it.
func (t *trial) warm(s *site) {
	for reused := false; !reused; {
		ctx := httptrace.WithClientTrace(context.WithValue(t.ctx, warming{}, true), &httptrace.ClientTrace{
			GotConn: func(got httptrace.GotConnInfo) { reused = got.Reused },
		})
		t.read(t.send(s.base, t.request(http.MethodHead, s.url, nil).WithContext(ctx)))
	}
}

func (t *trial) listen() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.fatalf("no port on loopback: %v", err)
	}
	t.cleanup(func() { _ = listener.Close() })
	return listener
}

// nowhere is the address of a port that nobody listens on.
func (t *trial) nowhere() string {
	listener := t.listen()
	defer listener.Close()
	return listener.Addr().String()
}

// request is one for the site or for a base that is no server.
func (t *trial) request(method, url string, body io.Reader) *http.Request {
	req, err := http.NewRequestWithContext(t.ctx, method, url, body)
	if err != nil {
		t.fatalf("%v", err)
	}
	return req
}

// get is a request for the base of a check that needs no server.
func (t *trial) get() *http.Request {
	return t.request(http.MethodGet, "http://upstream.test/path?q=1", nil)
}

// send makes a call that has to succeed. Its body is closed at the end of the check.
func (t *trial) send(rt http.RoundTripper, req *http.Request) *http.Response {
	resp, err := rt.RoundTrip(req)
	switch {
	case err != nil:
		t.fatalf("%s %s fails: %v", req.Method, path(req), err)
	case resp == nil:
		t.fatalf("%s %s has neither a response nor an error", req.Method, path(req))
	}
	t.cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// path is that of req as the server sees it.
func path(req *http.Request) string { return req.URL.RequestURI() }

// read reads the body to its end, which has to succeed, and closes it.
func (t *trial) read(resp *http.Response) string {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.fatalf("reading the body fails after %d bytes: %v", len(body), err)
	}
	if err := resp.Body.Close(); err != nil {
		t.fatalf("closing the body fails: %v", err)
	}
	return string(body)
}

// watched is a body that counts how often it is closed, and which nobody can know
// how to get a second time.
type watched struct {
	io.Reader
	closed atomic.Int64
}

func watch(text string) *watched { return &watched{Reader: strings.NewReader(text)} }

func (b *watched) Close() error {
	b.closed.Add(1)
	return nil
}

func (b *watched) isClosed() bool { return b.closed.Load() > 0 }

// base makes a function a RoundTripper.
type base func(*http.Request) (*http.Response, error)

func (f base) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// consume does with the body of a request what a RoundTripper has to.
func consume(req *http.Request) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
}

// respond is a response as net/http makes them.
func respond(req *http.Request, status int, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: body, ContentLength: -1, Request: req,
	}
}

// flush sends what was written so far.
func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
