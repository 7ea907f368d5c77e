package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/canary"
)

// behind returns a gateway on loopback that sends everybody to v2 at that address.
func behind(t *testing.T, addresses map[string]string) (*gateway, string) {
	t.Helper()
	picker := sluice.Must(canary.New("shop", "v1", canary.WithVersion("v2", 0, canary.All)))
	judge := sluice.Must(canary.NewJudge("shop"))
	require.NoError(t, judge.Begin(canary.Trial{Canary: "v2", Stable: "v1", CanaryWeight: canary.All, Generation: 1}))
	g := newGateway(picker, judge)
	for version, a := range addresses {
		require.NoError(t, g.add(version, []string{a}))
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return g, server.URL
}

// get calls as a user, and reads what there is.
func get(t *testing.T, url string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	req.Header.Set(userHeader, userID(1))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// A backend that dies in the middle of an answer makes the proxy panic, so that the client
// notices. The judge is told all the same, and the lease comes back.
func TestGateway_AnswerThatBreaksOff(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<16))
		panic(http.ErrAbortHandler)
	}))
	defer backend.Close()
	g, url := behind(t, map[string]string{"v2": backend.Listener.Addr().String()})
	_, err := get(t, url)
	require.Error(t, err)
	seen := g.judge.Verdict().CanarySeen
	assert.Equal(t, [2]int64{1, 1}, [2]int64{seen.Requests, seen.Failures})
	assert.Zero(t, g.instances["v2"].Snapshot().InFlight)
	assert.Zero(t, g.picker.Version("v2").InFlight())
}

// Nobody told the gateway where the version runs.
func TestGateway_VersionWithoutInstances(t *testing.T) {
	g, url := behind(t, nil)
	status, err := get(t, url)
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.EqualValues(t, 1, g.judge.Verdict().CanarySeen.Failures)
}

func TestGateway_NobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	g, url := behind(t, map[string]string{"v2": l.Addr().String()})
	status, err := get(t, url)
	require.NoError(t, err)
	assert.Equal(t, http.StatusBadGateway, status)
	assert.EqualValues(t, 1, g.judge.Verdict().CanarySeen.Failures)
}
