package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const clientIdle = time.Minute

// beside runs a test in a bubble, beside a server whose clients may stand still for
// clientIdle.
func beside(t *testing.T, h http.HandlerFunc, test func(t *testing.T, dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		network := pipes()
		l, err := network.listen("steady.test:0")
		require.NoError(t, err)
		server := &http.Server{Handler: &steady{h, clientIdle}}
		go server.Serve(l)
		defer server.Close()
		test(t, func() net.Conn {
			conn, err := network.dial(t.Context(), "tcp", l.Addr().String())
			require.NoError(t, err)
			return conn
		})
	})
}

// exchange sends a request whose body may be nil, and returns the whole answer.
func exchange(t *testing.T, client *http.Transport, body io.Reader) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://steady.test/", body)
	require.NoError(t, err)
	if client.ExpectContinueTimeout > 0 {
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := client.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(answer)
}

// inPieces writes n pieces with a pause before each.
func inPieces(n int, pause time.Duration) io.Reader {
	r, w := io.Pipe()
	go func() {
		for range n {
			time.Sleep(pause)
			io.WriteString(w, "piece")
		}
		w.Close()
	}()
	return r
}

func TestSteady_AnUploadThatStandsStillEnds(t *testing.T) {
	var broken error
	beside(t, func(_ http.ResponseWriter, r *http.Request) {
		_, broken = io.Copy(io.Discard, r.Body)
	}, func(t *testing.T, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		start := time.Now()
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
		io.ReadAll(conn)
		assert.ErrorIs(t, broken, os.ErrDeadlineExceeded)
		assert.Equal(t, clientIdle, time.Since(start))
	})
}

func TestSteady_AReaderThatStandsStillEnds(t *testing.T) {
	var broken error
	beside(t, func(w http.ResponseWriter, _ *http.Request) {
		for broken == nil {
			_, broken = io.WriteString(w, strings.Repeat("x", 10_000))
		}
	}, func(t *testing.T, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		conn.Read(make([]byte, 1000))
		time.Sleep(2 * clientIdle)
		synctest.Wait()
		assert.ErrorIs(t, broken, os.ErrDeadlineExceeded)
	})
}

// Only standing still ends anything: neither a body that keeps coming, nor an answer that
// takes its time, nor a stream with long pauses, nor what the connection was for before.
func TestSteady_WhoMovesMayTakeForEver(t *testing.T) {
	beside(t, func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		time.Sleep(3 * clientIdle)
		assert.NoError(t, r.Context().Err(), "the client has not left")
		for range 3 {
			fmt.Fprintf(w, "%d;", len(got))
			assert.NoError(t, http.NewResponseController(w).Flush())
			time.Sleep(3 * clientIdle)
		}
	}, func(t *testing.T, dial func() net.Conn) {
		client := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(), nil }}
		defer client.CloseIdleConnections()
		assert.Equal(t, "50;50;50;", exchange(t, client, inPieces(10, clientIdle/2)))
		time.Sleep(3 * clientIdle)
		assert.Equal(t, "0;0;0;", exchange(t, client, nil))
		assert.Equal(t, "5;5;5;", exchange(t, client, strings.NewReader("small")))
		client.ExpectContinueTimeout = time.Hour
		time.Sleep(3 * clientIdle)
		assert.Equal(t, "5;5;5;", exchange(t, client, inPieces(1, 0)), "100 Continue is the server's to write")
	})
}

func TestSteady_ConnectionsCanBeTakenOver(t *testing.T) {
	beside(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, both, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		time.Sleep(3 * clientIdle)
		line, _ := both.ReadString('\n')
		io.WriteString(conn, strings.ToUpper(line))
	}, func(t *testing.T, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		time.Sleep(6 * clientIdle)
		io.WriteString(conn, "hello\n")
		answer, _ := io.ReadAll(conn)
		assert.Equal(t, "HELLO\n", string(answer))
	})
}

// A few clients that stand still, in an upload or before what they have asked for, would
// take all slots for as long as they like.
func TestDaemon_ClientsThatStandStillLoseTheirSlots(t *testing.T) {
	came := make(chan struct{}, 2)
	d := start(t, `"client_idle_timeout": "50ms", "slots": 2,`, map[string]string{"all": upstreamOf(t, "/", func(w http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		io.Copy(io.Discard, r.Body)
		for err := error(nil); err == nil; {
			_, err = w.Write(make([]byte, 1<<20)) // more than any buffer between takes
		}
	}, "")})
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", d.front.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, request)
		require.NoError(t, err)
		<-came
	}
	require.Eventually(t, func() bool { return d.gate.Snapshot().InFlight.Now == 0 }, 30*time.Second, time.Millisecond)
	assert.Zero(t, d.lanes[0].breaker.Snapshot().Totals.Failure, "and the upstream is not to blame")
}
