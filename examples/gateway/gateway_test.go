package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These tests run the program itself, side by side: it needs little of a machine.

// programDir is where program builds; made and removed by TestMain.
var programDir string

func TestMain(m *testing.M) {
	var err error
	if programDir, err = os.MkdirTemp("", "gateway"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(programDir)
	os.Exit(code)
}

// program builds the program, once, and returns its path.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programDir, "gateway.exe")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// A process is the program running. Its standard error is read when it has ended.
type process struct {
	*exec.Cmd
	stderr bytes.Buffer
}

// command prepares the program, which is killed if it runs for more than 30 seconds.
func command(t *testing.T, args ...string) *process {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, path, args...)}
	p.Stderr = &p.stderr
	return p
}

// code waits for the end, which must be an exit and not a signal, and returns the
// exit code.
func (p *process) code(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	assert.NotContains(t, p.stderr.String(), "panic")
	return p.ProcessState.ExitCode()
}

func TestProgram_ShowsTheIncident(t *testing.T) {
	t.Parallel()
	p := command(t, "-duration", "12s")
	var out bytes.Buffer
	p.Stdout = &out
	start := time.Now()
	require.NoError(t, p.Start())
	code := p.code(t)
	took := time.Since(start)
	t.Log(out.String())
	require.Zero(t, code, p.stderr.String())
	assert.Empty(t, p.stderr.String())
	assert.GreaterOrEqual(t, took, 12*time.Second-100*time.Millisecond, "and no more than 30, when it would have been killed")

	acts := regexp.MustCompile(`(?m)^Act \d of 2.*$`).Split(out.String(), -1)
	require.Len(t, acts, 3, "an introduction and two acts")
	cells := regexp.MustCompile(`(?m)^ *\d+\.\ds (user|order)-service +(-|closed|open|half_open) +(\d+) +(\d+) +(\d+) +(\d+) +\d+% +\S+ +\S+ +(\d+)$`)
	without, with := cells.FindAllStringSubmatch(acts[1], -1), cells.FindAllStringSubmatch(acts[2], -1)
	assert.GreaterOrEqual(t, len(without), 8, "a line a second and service")
	assert.GreaterOrEqual(t, len(with), 10)
	for _, r := range without {
		assert.Equal(t, "-", r[2], "there is no breaker in the first act")
	}
	for _, r := range with {
		if r[1] == "user" {
			assert.Equal(t, "closed", r[2], r[0])
		}
	}
	for _, want := range []string{
		"> order-service hangs: 10s a request",
		"> order-service: closed → open for 0.",
		" calls took over 500ms",
		"> order-service is well again",
		"> order-service: open → half_open, ",
		"> order-service: half_open → closed, ",
	} {
		assert.Contains(t, acts[2], want)
	}

	for _, want := range []string{
		`availability of user-service +[0-5]?\d\.\d % +(99\.9|100\.0) %`,
		`most slots taken, of 60 +60 +\d+`,
		`requests that reached the sick backend +\d+ +\d+`,
		`from recovery to CLOSED +- +\d\.\d\ds`,
	} {
		assert.Regexp(t, want, acts[2])
	}
}

func TestProgram_WrongCommandLinesAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-duration", "9s"}, 2, "gateway: -duration 9s is not in [10s, 24h0m0s]\n"},
		{[]string{"-duration", "soon"}, 2, `invalid value "soon" for flag -duration`},
		{[]string{"-speed", "2"}, 2, "flag provided but not defined: -speed"},
		{[]string{"up"}, 2, `unexpected argument "up"`},
		{[]string{"-listen", "nowhere"}, 1, "listen tcp: address nowhere: missing port in address"},
		{[]string{"-h"}, 0, "-duration"},
	} {
		p := command(t, c.args...)
		require.NoError(t, p.Start())
		assert.Equalf(t, c.code, p.code(t), "%v", c.args)
		assert.Contains(t, p.stderr.String(), c.want)
	}
}

func TestProgram_PortInUseIsAClearError(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	p := command(t, "-listen", taken.Addr().String())
	require.NoError(t, p.Start())
	assert.Equal(t, 1, p.code(t))
	assert.Equal(t, fmt.Sprintf("gateway: listen tcp %v: bind: address already in use\n", taken.Addr()), p.stderr.String())
}

func TestProgram_InterruptEndsItAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal os.Signal
		want   string
	}{
		{os.Interrupt, "gateway: interrupt signal received\n"},
		{syscall.SIGTERM, "gateway: terminated signal received\n"},
	} {
		t.Run(c.signal.String(), func(t *testing.T) {
			t.Parallel()
			p := command(t)
			out, err := p.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, p.Start())
			lines := bufio.NewScanner(out)
			for lines.Scan() && !strings.HasPrefix(lines.Text(), " 1.0s order-service") {
			}
			sent := time.Now()
			require.NoError(t, p.Process.Signal(c.signal))
			for lines.Scan() { // to the end
			}
			assert.Equal(t, 1, p.code(t))
			assert.Less(t, time.Since(sent), 5*time.Second)
			assert.Equal(t, c.want, p.stderr.String())
		})
	}
}

func TestProgram_ClosedOutputEndsIt(t *testing.T) {
	t.Parallel()
	p := command(t)
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	_, err = bufio.NewReader(out).ReadString('\n') // as head -1 does
	require.NoError(t, err)
	closed := time.Now()
	require.NoError(t, out.Close())
	assert.NotZero(t, p.code(t), "ended by SIGPIPE as other programs are, or by the error of the write")
	assert.Less(t, time.Since(closed), 10*time.Second)
}

// Where there is no SIGPIPE, or the disk is full, the write itself tells.
func TestOutput_EndsTheRunWithTheErrorOfTheWrite(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	defer w.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = (&output{to: w, broken: cancel}).Write([]byte("first line\n"))
	require.ErrorIs(t, err, syscall.EPIPE)
	require.ErrorIs(t, context.Cause(ctx), syscall.EPIPE)
}
