package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain lets this binary be the server's process, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "serve" || os.Args[1] == "burn") {
		main()
		return
	}
	os.Exit(m.Run())
}

// How well the servers do is a matter of the machine. That the program runs, reports and
// leaves nothing behind is not.
func TestTrial(t *testing.T) {
	before := runtime.NumGoroutine()
	short := trial{calm: 100 * time.Millisecond, burst: 400 * time.Millisecond, after: 200 * time.Millisecond, work: time.Millisecond, deadline: 200 * time.Millisecond}
	var out bytes.Buffer
	require.NoError(t, short.run(t.Context(), &out))
	t.Log("\n" + out.String())
	for _, want := range []string{
		"answers a second are the capacity", "   naive  system\n", "system: an adaptive.System refuses",
		"before       0–0.1 s    75 ", "burnt      0.1–0.5 s ", "after      0.5–0.7 s    75 ", "burnt, all",
	} {
		assert.Contains(t, out.String(), want)
	}
	// The servers have ended, for run has waited for that. Connections end soon.
	for runtime.NumGoroutine() > before {
		time.Sleep(time.Millisecond)
	}
}

func TestTrial_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	endless := trial{calm: time.Hour, burst: time.Hour, after: time.Hour, work: time.Millisecond, deadline: time.Second}
	assert.ErrorIs(t, endless.run(ctx, new(bytes.Buffer)), context.Canceled)
}

// A server ends when its parent does, and so when its standard input does.
func TestServe_EndsWithItsParent(t *testing.T) {
	for _, k := range kinds {
		in, parent, err := os.Pipe()
		require.NoError(t, err)
		child, out, err := os.Pipe()
		require.NoError(t, err)
		ended := make(chan error)
		go func() { ended <- serve(context.Background(), []string{k.name, "1"}, in, out) }()
		address := make([]byte, 100)
		n, err := child.Read(address)
		require.NoError(t, err)
		url := "http://" + strings.TrimSpace(string(address[:n]))
		client := newClient()
		assert.Equal(t, http.StatusOK, call(t.Context(), client, url, time.Minute))
		client.CloseIdleConnections()
		require.NoError(t, parent.Close())
		require.NoError(t, <-ended)
		assert.Zero(t, call(t.Context(), client, url, time.Minute), "nobody listens")
		for _, f := range []*os.File{in, child, out} {
			require.NoError(t, f.Close())
		}
	}
}

func TestServe_Arguments(t *testing.T) {
	for want, args := range map[string][]string{
		"serve wants a kind and rounds": {"naive"},
		"invalid syntax":                {"naive", "many"},
		`"mighty" is no kind of server`: {"mighty", "1"},
	} {
		assert.ErrorContains(t, serve(t.Context(), args, new(bytes.Buffer), new(bytes.Buffer)), want)
	}
}
