package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const anyPorts = `"listen": "127.0.0.1:0", "admin": "127.0.0.1:0"`

// configFile writes a config.
func configFile(t *testing.T, format string, args ...any) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.json")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, format, args...), 0o600))
	return file
}

// operating starts the program with a config, and returns the addresses that its log
// tells, and the rest of that log.
func operating(t *testing.T, config string) (p *process, listen, admin string, log *bufio.Scanner) {
	t.Helper()
	p = command(t, "-config", config)
	p.Stderr = nil
	stderr, err := p.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	log = bufio.NewScanner(stderr)
	require.True(t, log.Scan())
	found := regexp.MustCompile(`msg="gateway serves" listen=(\S+) admin=(\S+) `).FindStringSubmatch(log.Text())
	require.NotNil(t, found, log.Text())
	return p, found[1], found[2], log
}

func TestProgram_ConfigServesUntilSIGTERMAndEndsWithZero(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(echoPath))
	defer s.Close()
	p, listen, admin, log := operating(t, configFile(t, `{%s, %s, "services": {"users": {"prefix": "/users", "url": %q}}}`, anyPorts, patient, s.URL))
	for url, want := range map[string]string{
		"http://" + listen + "/users/42":      "/42",
		"http://" + admin + "/healthz":        "ok\n",
		"http://" + admin + "/debug/sluice":   `"success": `,
		"http://" + listen + "/debug/sluice":  "404 page not found\n",
		"http://" + admin + "/users/42":       "404 page not found\n",
		"http://" + listen + "/users/?page=2": "/?page=2",
	} {
		resp, err := http.Get(url)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		assert.Contains(t, string(body), want, url)
	}
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	var rest []string
	for log.Scan() {
		rest = append(rest, log.Text())
	}
	assert.Zero(t, p.code(t))
	assert.Contains(t, strings.Join(rest, "\n"), `msg="gateway drains"`)
	assert.Contains(t, rest[len(rest)-1], `msg="gateway has stopped"`)
}

func TestProgram_ConfigThatCannotBeUsedEndsItAtOnce(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	const services = `"services": {"users": {"prefix": "/users", "url": "http://users.test"}}`
	broken := configFile(t, `{%s, "slots": "many", "report": "-1s", %s}`, anyPorts, services)
	inUse := configFile(t, `{"listen": "127.0.0.1:0", "admin": %q, %s}`, taken.Addr(), services)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-config", broken}, 1, "gateway: " + broken + ":\nslots: \"many\" is not a whole number\nreport: -1s is negative\n"},
		{[]string{"-config", inUse}, 1, fmt.Sprintf("gateway: admin: listen tcp %v: bind: address already in use\n", taken.Addr())},
		{[]string{"-config", broken + ".not"}, 1, "gateway: open " + broken + ".not: no such file or directory\n"},
		{[]string{"-config", ""}, 1, "gateway: open : no such file or directory\n"},
		{[]string{"-config", inUse, "-duration", "12s"}, 2, "gateway: -duration and -listen are for the demonstration: with -config, the file has the address\n"},
		{[]string{"-listen", ":0", "-config", inUse}, 2, "gateway: -duration and -listen are for the demonstration: with -config, the file has the address\n"},
	} {
		p := command(t, c.args...)
		require.NoError(t, p.Start())
		assert.Equalf(t, c.code, p.code(t), "%v", c.args)
		assert.Equal(t, c.want, p.stderr.String())
	}
}
