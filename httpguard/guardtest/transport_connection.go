package guardtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
)

func connectionsReused(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	t.warm(s)
	rt := wrap(s.base)
	for i := range 20 {
		if i%2 == 0 {
			t.read(t.send(rt, t.request(http.MethodGet, s.url, nil)))
		} else {
			t.read(t.send(rt, t.request(http.MethodPost, s.url, strings.NewReader(strings.Repeat("x", 1000)))))
		}
	}
	t.noConnection(s, "20 calls, one after the other,")
}

// noConnection is for calls to a server that is warm.
func (t *trial) noConnection(s *site, what string) {
	if n := s.dialled.Load(); n != 0 {
		t.errorf("%s took %d connections more", what, n)
	}
}

func emptyAnswersKeepConnection(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/304":
			w.Header().Set("Etag", `"1"`)
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("Content-Length", "7")
		}
	}))
	t.warm(s)
	rt := wrap(s.base)
	for range 5 {
		for _, c := range []struct {
			method, path string
			length       int64
		}{{http.MethodHead, "/", 7}, {http.MethodGet, "/204", 0}, {http.MethodGet, "/304", -1}} {
			resp := t.send(rt, t.request(c.method, s.url+c.path, nil))
			if body := t.read(resp); body != "" {
				t.errorf("%s %s has the body %q", c.method, c.path, body)
			}
			if c.length >= 0 && resp.ContentLength != c.length {
				t.errorf("%s %s has length %d, not %d", c.method, c.path, resp.ContentLength, c.length)
			}
		}
	}
	t.noConnection(s, "15 answers without a body")
}

func abandonedResponsesClosed(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	var calls atomic.Int64
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1)%3 != 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
	}))
	s.base.MaxConnsPerHost = 1
	rt := wrap(s.base)
	for range 6 {
		t.read(t.send(rt, t.request(http.MethodGet, s.url, nil)))
	}
}

func closeIdleConnectionsArrives(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.NotFoundHandler())
	t.warm(s)
	client := &http.Client{Transport: wrap(s.base)}
	// More than two calls, because an HTTP/2 connection may seem busy, and so be left
	// open, until some time after the end of a body.
	for range 20 {
		resp, err := client.Do(t.request(http.MethodGet, s.url, nil))
		if err != nil {
			t.fatalf("the call fails: %v", err)
		}
		t.read(resp)
		client.CloseIdleConnections()
	}
	if s.dialled.Load() == 0 {
		t.errorf("with idle connections closed between them, 20 calls took one connection")
	}
}

func idleConnectionsLeftAlone(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.NotFoundHandler())
	t.warm(s)
	rt := wrap(s.base)
	t.read(t.send(rt, t.request(http.MethodGet, s.url, nil)))
	t.mustFail(rt, t.request(http.MethodGet, "http://"+t.nowhere(), nil))
	t.read(t.send(rt, t.request(http.MethodGet, s.url, nil)))
	t.noConnection(s, "2 calls, with one between them to another server that failed,")
}

// upgraded is a client's connection that was upgraded through a reverse proxy with
// the wrapper. The server echoes what it gets, and says bye at the end of it.
func (t *trial) upgraded(wrap func(http.RoundTripper) http.RoundTripper) (*net.TCPConn, *bufio.Reader) {
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
		_, _ = io.WriteString(conn, "bye\n")
	}))
	proxy := t.serve(t.proxy(s, wrap))
	conn, err := net.Dial("tcp", strings.TrimPrefix(proxy.url, "http://"))
	if err != nil {
		t.fatalf("%v", err)
	}
	t.cleanup(func() { _ = conn.Close() })
	go func() { // no read of it has to be interrupted by hand
		<-t.ctx.Done()
		_ = conn.Close()
	}()
	_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.fatalf("the reverse proxy does not answer: %v", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.fatalf("the reverse proxy answers with %d, not 101", resp.StatusCode)
	}
	return conn.(*net.TCPConn), in
}

// proxy is a reverse proxy to s with the wrapper.
func (t *trial) proxy(s *site, wrap func(http.RoundTripper) http.RoundTripper) *httputil.ReverseProxy {
	target, err := url.Parse(s.url)
	if err != nil {
		t.fatalf("%v", err)
	}
	return &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:    wrap(s.base),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

func servesReverseProxy(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	s := t.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	proxy := t.serve(t.proxy(s, wrap))
	for _, text := range []string{"", "body"} {
		resp := t.send(proxy.base, t.request(http.MethodPost, proxy.url, strings.NewReader(text)))
		if body := t.read(resp); resp.StatusCode != 200 || body != text {
			t.errorf("the echo of %q through it is %d and %q", text, resp.StatusCode, body)
		}
	}
}

func upgradeWritable(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	conn, in := t.upgraded(wrap)
	t.echoes(conn, in)
}

func (t *trial) echoes(conn io.Writer, in *bufio.Reader) {
	for _, line := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(conn, line); err != nil {
			t.fatalf("writing fails: %v", err)
		}
		if got, err := in.ReadString('\n'); got != line {
			t.fatalf("the echo of %q is %q, %v", line, got, err)
		}
	}
}

func upgradeHalfCloses(t *trial, wrap func(http.RoundTripper) http.RoundTripper) {
	conn, in := t.upgraded(wrap)
	if err := conn.CloseWrite(); err != nil {
		t.fatalf("%v", err)
	}
	if got, err := in.ReadString('\n'); got != "bye\n" {
		t.errorf("after the client has closed its direction, the server's last words are %q, %v", got, err)
	}
}
