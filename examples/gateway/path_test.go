package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/breaker"
)

// ask sends a request line as it is, and returns the status and the whole answer.
func ask(t *testing.T, at net.Addr, line string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", at.String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, line+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// To a mux "%2e%2e" is the name of a segment, and to many a server the way up: out of
// what the URL of the service is confined to.
func TestProxy_PathsThatLeadUpAreRefused(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(echoPath))
	defer s.Close()
	d := start(t, "", map[string]string{
		"orders": fmt.Sprintf(`{"prefix": "/api/orders", "url": "%s/public"}`, s.URL),
		"all":    fmt.Sprintf(`{"prefix": "/", "url": "%s/web"}`, s.URL),
	})
	for line, want := range map[string]int{
		"GET /api/orders/%2e%2e/secret":         400,
		"GET /api/orders/%2E./secret":           400,
		"GET /api/orders/..%2fsecret":           400,
		"GET /api/orders/a%2F..%2F..%2Fsecret":  400,
		"GET /api/orders/..%5csecret":           400,
		"GET /api/orders/..;a=b/secret":         400,
		"GET /api/orders/%2e%2e":                400,
		"GET /%2e%2e/secret":                    400,
		"CONNECT /api/orders/../../secret":      400,
		"CONNECT /api/orders/1":                 400, // a gateway opens no tunnels
		"GET /api/orders/../secret":             307, // by the mux, to what it means
		"GET /api/orders/a..b/..c/d../%2e%2e.x": 200,
		"GET /api/orders/%252e%252e/secret":     200, // no more than a name
		"GET /api/orders/1":                     200,
		"OPTIONS /api/orders/1":                 200,
	} {
		got, body := ask(t, d.front.Addr(), line)
		assert.Equal(t, want, got, "%s: %s", line, body)
	}
}

// What a client has written otherwise than anybody would, it means all the same, and
// what it asks for is between it and the service.
func TestProxy_PathsAndQueriesArriveAsTheyCame(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(echoPath))
	defer s.Close()
	d := start(t, "", map[string]string{
		"orders": fmt.Sprintf(`{"prefix": "/api/orders", "url": "%s/v2"}`, s.URL),
		"umlaut": fmt.Sprintf(`{"prefix": "/ü/ö/", "url": "%s"}`, s.URL),
	})
	for path, want := range map[string]string{
		"/%61pi/orders/a":            "/v2/a",
		"/%61pi/orders":              "/v2/",
		"/%61pi/orders/":             "/v2/",
		"/api/%6frders/a%2Fb":        "/v2/a%2Fb",
		"/%C3%BC/%C3%B6":             "/",
		"/%C3%BC/%C3%B6/a":           "/a",
		"/%c3%bc/%c3%b6/a%2fb/%61":   "/a%2fb/%61",
		"/api/orders/?a=1;b=2&c=%zz": "/v2/?a=1;b=2&c=%zz",
		"/api/orders/?":              "/v2/?",
		"/api/orders/%2e/a":          "/v2/%2e/a",
	} {
		status, got := ask(t, d.front.Addr(), "GET "+path)
		assert.Equal(t, http.StatusOK, status, path)
		assert.Equal(t, want, got, path)
	}
	status, _ := ask(t, d.front.Addr(), "GET /api%2Forders/a")
	assert.Equal(t, http.StatusNotFound, status, "this is one segment")
}

// answeringOnce is the address of a server that answers each connection once, and tells when
// one of them is over.
func answeringOnce(t *testing.T, answer string) (address string, over <-chan struct{}) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	ended := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					io.WriteString(conn, answer)
					io.Copy(io.Discard, conn)
					ended <- struct{}{}
				}
			}()
		}
	}()
	return l.Addr().String(), ended
}

// httputil.ReverseProxy answers 502 for a switch that nobody has asked for, and forgets
// the connection.
func TestProxy_EndsConnectionsThatSwitchUnasked(t *testing.T) {
	address, over := answeringOnce(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n")
	d := start(t, "", map[string]string{"odd": fmt.Sprintf(`{"prefix": "/", "url": "http://%s"}`, address)})
	for range 3 {
		resp, _ := fetch(t, d.front.Addr(), "/")
		assert.Equal(t, http.StatusBadGateway, resp.StatusCode)
		<-over
	}
}

// A header can fill the memory as well as a body.
func TestProxy_AnEndlessHeaderIs502(t *testing.T) {
	d := start(t, "", map[string]string{"odd": upstreamOf(t, "/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 2<<20))
	}, "")})
	resp, _ := fetch(t, d.front.Addr(), "/")
	assert.Equal(t, http.StatusBadGateway, resp.StatusCode)
}

// net/http takes "000" for a status, and panics when it is to write it.
func TestProxy_AStatusThatIsNoneIs502(t *testing.T) {
	address, _ := answeringOnce(t, "HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n")
	d := start(t, "", map[string]string{"odd": fmt.Sprintf(
		`{"prefix": "/", "url": "http://%s", "breaker": {"rules": [{"kind": "consecutive_failures", "count": 1}], "open_for": "1m"}}`, address)})
	resp, _ := fetch(t, d.front.Addr(), "/")
	assert.Equal(t, http.StatusBadGateway, resp.StatusCode)
	assert.Equal(t, breaker.Open, d.lanes[0].breaker.State())
	assert.NotContains(t, d.log.String(), "panic")
}
