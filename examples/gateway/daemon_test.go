package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/breaker"
)

// A running daemon, with its log.
type running struct {
	*daemon
	log  *journal
	stop context.CancelFunc // as SIGTERM does
	end  chan error         // what serve returns
}

// A journal is a log that can be read while it is written.
type journal struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all.String()
}

// patient is a JSON of defaults for a machine that may stand still for a while.
const patient = `"defaults": {"timeout": {"base": "1m", "max": "1m"}, "transport": {"response_header_timeout": "0s"}}`

// start serves, on free ports, the services whose JSON is given by name, with the
// patient defaults; top is more JSON, such as `"slots": 5,`.
func start(t *testing.T, top string, services map[string]string) *running {
	t.Helper()
	var list []string
	for name, s := range services {
		list = append(list, fmt.Sprintf("%q: %s", name, s))
	}
	c, err := parseConfig([]byte(fmt.Sprintf(`{"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", %s, %s "services": {%s}}`, patient, top, strings.Join(list, ", "))))
	require.NoError(t, err)
	r := &running{log: &journal{}, end: make(chan error, 1)}
	r.daemon, err = newDaemon(c, slog.New(slog.NewTextHandler(r.log, nil)))
	require.NoError(t, err)
	require.NoError(t, r.listen())
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	go func() { r.end <- r.serve(ctx); close(r.end) }()
	t.Cleanup(func() { stop(); <-r.end })
	return r
}

// upstreamOf is a service's JSON: its prefix, and h behind it.
func upstreamOf(t *testing.T, prefix string, h http.HandlerFunc, more string) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return fmt.Sprintf(`{"prefix": %q, "url": %q %s}`, prefix, s.URL, more)
}

// fetch gets a path from an address, and returns the whole answer.
func fetch(t *testing.T, address fmt.Stringer, path string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address.String()+path, nil)
	require.NoError(t, err)
	resp, err := http.DefaultTransport.RoundTrip(req) // follows no redirect
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

func echoPath(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.RequestURI()) }

func TestDaemon_EachRequestGoesToItsService(t *testing.T) {
	name := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, name+" "+r.URL.RequestURI()) }
	}
	d := start(t, "", map[string]string{
		"users":   upstreamOf(t, "/api/users/", name("users"), ""),
		"orders":  upstreamOf(t, "/api/orders", name("orders"), ""),
		"avatars": upstreamOf(t, "/api/users/avatars", name("avatars"), ""),
	})
	for path, want := range map[string]string{
		"/api/users/42":         "users /42",
		"/api/users":            "users /",
		"/api/users/?q=a%20b":   "users /?q=a%20b",
		"/api/users/a%2Fb":      "users /a%2Fb",
		"/api/orders/42/items":  "orders /42/items",
		"/api/users/avatars/42": "avatars /42",
	} {
		resp, body := fetch(t, d.front.Addr(), path)
		assert.Equal(t, http.StatusOK, resp.StatusCode, path)
		assert.Equal(t, want, body, path)
	}
	for _, path := range []string{"/", "/api", "/api/usersX", "/healthz", "/debug/sluice"} {
		resp, _ := fetch(t, d.front.Addr(), path)
		assert.Equal(t, http.StatusNotFound, resp.StatusCode, path)
	}
}

func TestDaemon_CatchAllAndAURLWithAPath(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(echoPath))
	defer s.Close()
	d := start(t, "", map[string]string{"all": fmt.Sprintf(`{"prefix": "/", "url": "%s/v2/"}`, s.URL)})
	for _, path := range []string{"/", "/a/b?c"} {
		_, body := fetch(t, d.front.Addr(), path)
		assert.Equal(t, "/v2"+path, body)
	}
}

func TestDaemon_502And504And503WithRetryAfter(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	const trips = `, "breaker": {"rules": [{"kind": "consecutive_failures", "count": 2}], "open_for": "1m"}`
	d := start(t, "", map[string]string{
		"gone": fmt.Sprintf(`{"prefix": "/gone", "url": %q %s}`, closed.URL, trips),
		"hung": upstreamOf(t, "/hung", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			`, "timeout": {"base": "50ms"}`+trips),
	})
	for path, status := range map[string]int{"/gone/": http.StatusBadGateway, "/hung/": http.StatusGatewayTimeout} {
		for range 2 {
			resp, body := fetch(t, d.front.Addr(), path)
			assert.Equal(t, status, resp.StatusCode)
			assert.Equal(t, http.StatusText(status)+"\n", body, "and nothing of the inside")
		}
		resp, _ := fetch(t, d.front.Addr(), path)
		assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		assert.NotEmpty(t, resp.Header.Get("Retry-After"))
		assert.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
	}
	assert.Contains(t, d.log.String(), `msg="upstream cannot be reached" service=gone`)
	assert.NotContains(t, d.log.String(), `msg="upstream cannot be reached" service=hung`)
	for _, l := range d.lanes {
		assert.Equal(t, breaker.Open, l.breaker.State())
	}
}

// A body that stands still would hold a slot for as long as its client waits.
func TestDaemon_AStalledBodyEnds(t *testing.T) {
	d := start(t, "", map[string]string{"stalls": upstreamOf(t, "/", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, `, "transport": {"body_idle_timeout": "50ms"}`)})
	resp, err := http.Get("http://" + d.front.Addr().String())
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "and does not look whole")
	assert.Equal(t, "half", string(body))
	require.Eventually(t, func() bool { return d.gate.Snapshot().InFlight.Now == 0 }, 10*time.Second, time.Millisecond)
}

// One service that hangs can take all slots; the admin pages need none.
func TestDaemon_NoSlotFreeIs503(t *testing.T) {
	came, answer := make(chan struct{}), make(chan struct{})
	d := start(t, `"slots": 2,`, map[string]string{
		"users": upstreamOf(t, "/users", echoPath, ""),
		"slow":  upstreamOf(t, "/slow", func(http.ResponseWriter, *http.Request) { came <- struct{}{}; <-answer }, ""),
	})
	var inside sync.WaitGroup
	for range 2 {
		inside.Go(func() { fetch(t, d.front.Addr(), "/slow/") })
		<-came
	}
	resp, _ := fetch(t, d.front.Addr(), "/users/")
	assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	assert.NotEmpty(t, resp.Header.Get("Retry-After"))
	resp, _ = fetch(t, d.admin.Addr(), "/healthz")
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	close(answer)
	inside.Wait()
	resp, _ = fetch(t, d.front.Addr(), "/users/")
	assert.Equal(t, http.StatusOK, resp.StatusCode)
}

// What a stream has to say arrives at once, and a connection that has switched protocols
// holds no slot, through all that stands between.
func TestDaemon_EventsAndUpgradesPass(t *testing.T) {
	more := make(chan struct{})
	d := start(t, `"slots": 1,`, map[string]string{"live": upstreamOf(t, "/", func(w http.ResponseWriter, r *http.Request) {
		out := http.NewResponseController(w)
		if r.Header.Get("Upgrade") == "" {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: 1\n\n")
			out.Flush()
			<-more
			io.WriteString(w, "data: 2\n\n")
			return
		}
		conn, both, err := out.Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := both.ReadString('\n')
		io.WriteString(conn, strings.ToUpper(line))
	}, "")})

	conn, err := net.Dial("tcp", d.front.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	talk := bufio.NewReader(conn)
	switched, err := http.ReadResponse(talk, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, switched.StatusCode)

	resp, err := http.Get("http://" + d.front.Addr().String())
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode, "the only slot is free")
	first := make([]byte, len("data: 1\n\n"))
	_, err = io.ReadFull(resp.Body, first)
	require.NoError(t, err)
	close(more)
	rest, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "data: 1\n\ndata: 2\n\n", string(first)+string(rest))

	_, err = io.WriteString(conn, "hello\n")
	require.NoError(t, err)
	answer, err := talk.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "HELLO\n", answer)
}

// A client that leaves is no failure of the upstream: it is logged as 499 at Debug.
func TestDaemon_AClientThatLeavesDoesNotTrip(t *testing.T) {
	came := make(chan struct{})
	d := start(t, "", map[string]string{
		"slow": upstreamOf(t, "/slow", func(w http.ResponseWriter, r *http.Request) { came <- struct{}{}; <-r.Context().Done() },
			`, "breaker": {"rules": [{"kind": "consecutive_failures", "count": 1}]}`),
	})
	for range 3 {
		ctx, leave := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.front.Addr().String()+"/slow/", nil)
		require.NoError(t, err)
		gone := make(chan error)
		go func() { _, err := http.DefaultTransport.RoundTrip(req); gone <- err }()
		<-came
		leave()
		require.ErrorIs(t, <-gone, context.Canceled)
	}
	require.Eventually(t, func() bool { return d.lanes[0].breaker.Snapshot().Totals.Ignored == 3 }, 10*time.Second, time.Millisecond)
	assert.Equal(t, breaker.Closed, d.lanes[0].breaker.State())
}

func TestDaemon_AdminPages(t *testing.T) {
	d := start(t, "", map[string]string{"users": upstreamOf(t, "/", echoPath, "")})
	fetch(t, d.front.Addr(), "/")
	resp, body := fetch(t, d.admin.Addr(), "/healthz")
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Equal(t, "ok\n", body)

	resp, body = fetch(t, d.admin.Addr(), "/debug/sluice")
	assert.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	assert.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
	var raw map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(body), &raw))
	assert.Contains(t, raw, "transport/users")
	var breakers map[string]struct {
		State  string
		Totals breaker.TotalsSnapshot
	}
	require.NoError(t, json.Unmarshal(raw["breakers"], &breakers))
	assert.Equal(t, "closed", breakers["users"].State)
	assert.EqualValues(t, 1, breakers["users"].Totals.Success)
}

func TestDaemon_ReportsEachServiceAsOftenAsItIsTold(t *testing.T) {
	d := start(t, `"report": "20ms",`, map[string]string{
		"users":  upstreamOf(t, "/users", echoPath, ""),
		"orders": upstreamOf(t, "/orders", echoPath, `, "timeout": {"base": "2s"}`),
	})
	fetch(t, d.front.Addr(), "/orders/")
	for _, want := range []string{
		"msg=report service=orders state=closed requests=1 refused=0 failure_rate=0 slow_rate=0 timeout=2s",
		"msg=report service=orders state=closed requests=0 refused=0",
		"msg=report service=users state=closed requests=0 refused=0 failure_rate=0 slow_rate=0 timeout=1m0s",
	} {
		assert.Eventually(t, func() bool { return strings.Contains(d.log.String(), want) }, 30*time.Second, 5*time.Millisecond, want)
	}
}

// Requests that are under way when the gateway is told to stop are answered, and
// operators can see that it drains.
func TestDaemon_DrainsWhatItHas(t *testing.T) {
	came, answer := make(chan struct{}), make(chan struct{})
	d := start(t, "", map[string]string{"slow": upstreamOf(t, "/", func(w http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		<-answer
		io.WriteString(w, "at last")
	}, "")})
	answered := make(chan string, 1)
	go func() {
		_, body := fetch(t, d.front.Addr(), "/")
		answered <- body
	}()
	<-came
	d.stop()
	require.Eventually(t, func() bool {
		resp, _ := fetch(t, d.admin.Addr(), "/healthz")
		return resp.StatusCode == http.StatusServiceUnavailable
	}, 10*time.Second, time.Millisecond)
	resp, _ := fetch(t, d.front.Addr(), "/")
	assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, "a new request")
	assert.NotEmpty(t, resp.Header.Get("Retry-After"))
	assert.True(t, resp.Close)
	select {
	case err := <-d.end:
		require.Failf(t, "it did not wait", "%v", err)
	default:
	}
	close(answer)
	assert.Equal(t, "at last", <-answered)
	require.NoError(t, <-d.end)
}

func TestDaemon_CutsOffWhatDoesNotEndInTime(t *testing.T) {
	came := make(chan struct{})
	d := start(t, `"drain": "50ms",`, map[string]string{"hung": upstreamOf(t, "/", func(w http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		<-r.Context().Done()
	}, "")})
	go http.Get("http://" + d.front.Addr().String())
	<-came
	d.stop()
	require.EqualError(t, <-d.end, "requests cut off after 50ms: 1")
}
