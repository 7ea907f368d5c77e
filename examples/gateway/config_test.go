package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/breaker"
)

// smallest is a config that says nothing it need not.
const smallest = `{"services": {"orders": {"prefix": "/orders", "url": "http://orders.test"}}}`

func TestConfig_ExampleFileIsReadWhole(t *testing.T) {
	c, err := loadConfig("gateway.json")
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:8080", c.listen)
	assert.Equal(t, "127.0.0.1:8081", c.admin)
	assert.Equal(t, 200, c.slots)
	require.Len(t, c.services, 3)
	orders, reports, users := c.services[0], c.services[1], c.services[2]

	assert.Equal(t, "user-service", users.name)
	assert.Equal(t, "/api/users/", users.prefix)
	assert.Equal(t, "http://127.0.0.1:9001", users.url.String())
	assert.Equal(t, time.Second, users.base, "the default")
	assert.Equal(t, 5*time.Second, users.max)
	assert.Equal(t, []int{1, 5, 20}, users.breaker.Probes)

	assert.Equal(t, 2*time.Second, orders.base, "its own")
	assert.Equal(t, users.pool, orders.pool)
	require.Len(t, orders.breaker.Rules, 3, "a list is replaced whole")
	assert.Equal(t, breaker.Rule{Kind: breaker.SlowCallRatio, SlowerThan: 1200 * time.Millisecond, Ratio: 0.4}, orders.breaker.Rules[0])
	assert.Equal(t, []int{1, 5, 20}, orders.breaker.Probes, "what a service does not say is as in the defaults")

	assert.Equal(t, 30*time.Second, reports.pool.responseHeaderTimeout)
	assert.Equal(t, 20, reports.pool.mostConnections)
	assert.Equal(t, 5*time.Second, reports.pool.connectTimeout)
	assert.Equal(t, 30*time.Second, reports.breaker.Rules[0].OpenFor)
}

func TestConfig_DefaultsStandWhereNothingIsSaid(t *testing.T) {
	c, err := parseConfig([]byte(smallest))
	require.NoError(t, err)
	want := defaultConfig()
	want.services = c.services
	assert.Equal(t, want, c)
	require.Len(t, c.services, 1)
	assert.Equal(t, defaultSettings(), c.services[0].settings)
	assert.Equal(t, 5*time.Second, c.services[0].pool.connectTimeout)
}

// The defaults may stand behind the services that they are for, and one service's
// settings are nobody else's.
func TestConfig_SettingsOfAServiceGoOverTheDefaults(t *testing.T) {
	c, err := parseConfig([]byte(`{
		"services": {
			"a": {"prefix": "/a/", "url": "http://a.test", "breaker": {"probes": [3], "recovery": []}},
			"b": {"prefix": "/", "url": "http://b.test/root/"}
		},
		"defaults": {"timeout": {"base": "3s"}, "breaker": {"probes": [1, 2], "recovery": [{"share": 0.5, "for": "1s"}]}}
	}`))
	require.NoError(t, err)
	a, b := c.services[0], c.services[1]
	assert.Equal(t, []int{3}, a.breaker.Probes)
	assert.Empty(t, a.breaker.Recovery)
	assert.Equal(t, []int{1, 2}, b.breaker.Probes)
	assert.Len(t, b.breaker.Recovery, 1)
	assert.Equal(t, []time.Duration{3 * time.Second, 3 * time.Second}, []time.Duration{a.base, b.base})
	assert.Equal(t, []string{"/a/", "/"}, []string{a.prefix, b.prefix})
}

func TestConfig_AdminIsOnLoopbackUnlessTold(t *testing.T) {
	for admin, want := range map[string]string{
		":9000":           "127.0.0.1:9000",
		"0.0.0.0:9000":    "0.0.0.0:9000",
		"10.0.0.7:9000":   "10.0.0.7:9000",
		"[::1]:9000":      "[::1]:9000",
		"admin.test:9000": "admin.test:9000",
	} {
		c, err := parseConfig([]byte(`{"admin": "` + admin + `", ` + smallest[1:]))
		require.NoError(t, err)
		assert.Equal(t, want, c.admin)
	}
}

func TestConfig_TellsAllThatIsWrongAtOnce(t *testing.T) {
	_, err := parseConfig([]byte(`{
		"listen": "nowhere",
		"admin": 8081,
		"slots": 0,
		"slots": 2,
		"drain": "-1s",
		"report": 10,
		"speed": "high",
		"defaults": {
			"timeout": {"base": "soon", "max": null},
			"transport": {"connect_timeout": "0s", "max_connections_per_host": -1},
			"breaker": {"window": 10, "rules": [{"kind": "mood", "ratio": 0.5}], "opn_for": "1s"},
			"retries": 3
		},
		"services": {
			"a": {"url": "http://a.test?x=1", "prefix": "/x"},
			"a": {},
			"b": {"prefix": "/x/", "url": "ftp://b.test", "timeout": {"base": "9s"}},
			"c c": {"prefix": "api/{id}", "Url": "http://c.test"},
			"d": {"prefix": "/d", "url": "http://u:secret@d.test", "breaker": {"rules": [{"kind": "error_ratio", "ratio": 2}], "open_for": "0s"}},
			"e": [],
			"f": {"prefix": "/f", "url": "http://f.test", "transport": {"max_idle_connections_per_host": 1.5}, "breaker": true}
		}
	}`))
	require.Error(t, err)
	assert.Equal(t, strings.TrimSpace(`
slots: stands there twice
listen: "nowhere" is not host:port, such as "127.0.0.1:8080"
admin: 8081 is not text in quotes
slots: 0 is not positive
drain: -1s is negative
report: 10 is not a duration in text, such as "250ms" or "1m30s"
defaults.timeout.base: "soon" is not a duration in text, such as "250ms" or "1m30s"
defaults.timeout.max: null is not a duration in text, such as "250ms" or "1m30s"
defaults.transport.connect_timeout: 0s is not positive
defaults.transport.max_connections_per_host: -1 is negative
defaults.breaker.window: 10 is a bare number, want a duration in text such as "250ms", "1.5s" or "1h30m"
defaults.breaker.rules[0].kind: breaker: kind "mood" is not one of slow_call_ratio, error_ratio, error_count, consecutive_failures
defaults.breaker.opn_for: unknown key
defaults.retries: unknown key
services.a: stands there twice
services.a.url: "http://a.test?x=1" must end with its path
services.b.url: "ftp://b.test" is not a URL such as "http://orders.internal:8080"
services.b.timeout.max: 5s is less than base 9s
services["c c"].prefix: "api/{id}" is not the beginning of a path, such as "/api/orders"
services["c c"].url: is missing: where the service is, such as "http://orders.internal:8080"
services["c c"].Url: unknown key
services.d.url: it names a user, which the gateway would not send
services.d.breaker: Rules[0].Ratio 2 is not in [0.000001, 1]
services.d.breaker: OpenFor 0s is not positive
services.e: [] is not an object
services.f.transport.max_idle_connections_per_host: 1.5 is not a whole number
services.f.breaker: true is not an object
services: "a" and "b" both have the prefix "/x/"
speed: unknown key
`), err.Error())
}

func TestConfig_ValuesThatMakeNoSenseTogether(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{`{"listen": "127.0.0.1:80", "admin": ":80", ` + smallest[1:], "admin: 127.0.0.1:80 is the address of listen, too"},
		{`{"defaults": {"timeout": {"base": "6s"}}, ` + smallest[1:], "defaults.timeout.max: 5s is less than base 6s"},
		{`{"defaults": {"transport": {"response_header_timeout": "10ms"}}, ` + smallest[1:],
			"defaults.transport.response_header_timeout: 10ms ends each attempt before timeout.base 1s does"},
		{`{"client_idle_timeout": "-1s", ` + smallest[1:], "client_idle_timeout: -1s is negative"},
		{`{}`, "services: there must be at least one"},
		{`{"services": {"": {"prefix": "/a", "url": "http://a.test"}}}`, `services[""]: the name is empty`},
	} {
		_, err := parseConfig([]byte(c.doc))
		assert.EqualError(t, err, c.want)
	}
}

func TestConfig_MoreSlotsThanAGateHas(t *testing.T) {
	if strconv.IntSize < 64 {
		t.Skip("needs an int of 64 bits: in one of 32, no number is too large")
	}
	_, err := parseConfig([]byte(`{"slots": 4294967296, ` + smallest[1:]))
	assert.EqualError(t, err, "slots: 4294967296 is more than 4294967295")
}

func TestConfig_PrefixesAreWholePaths(t *testing.T) {
	for _, prefix := range []string{"", "api", "//", "/a//b", "/a/../b", "/a/.", "/{x}", "/a b", "/a?b", "/%61", "/a#"} {
		var wrong complaints
		readPrefix(&wrong, "prefix", prefix)
		assert.Lenf(t, wrong, 1, "%q", prefix)
	}
	for prefix, want := range map[string]string{"/": "/", "/a": "/a/", "/a/": "/a/", "/a/b": "/a/b/", "/ü": "/ü/"} {
		var wrong complaints
		assert.Equal(t, want, readPrefix(&wrong, "prefix", prefix))
		assert.Empty(t, wrong)
	}
}

func TestConfig_WhatIsNotJSON(t *testing.T) {
	for doc, want := range map[string]string{
		"":                         "the document is empty",
		" \n":                      "the document is empty",
		"{\n\"slots\": 1,\n}":      "line 3: invalid character '}' looking for beginning of object key string",
		"{\"slots\": 1":            "line 1: unexpected end of JSON input",
		smallest + "\n{}":          "line 2: invalid character '{' after top-level value",
		"[1, 2]":                   "[1,2] is not an object",
		"\ufeff" + smallest:        "line 1: a byte order mark stands before the document; save it without",
		"slots = 2":                "line 1: invalid character 's' looking for beginning of value",
		"{\"slots\": 1, // two\n}": "line 1: invalid character '/' looking for beginning of object key string",
	} {
		_, err := parseConfig([]byte(doc))
		assert.EqualErrorf(t, err, want, "%s", doc)
	}
}

func TestConfig_ErrorNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "broken.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"slots": 0, `+smallest[1:]), 0o600))
	_, err := loadConfig(file)
	assert.EqualError(t, err, file+":\nslots: 0 is not positive")
	_, err = loadConfig(file + ".not")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestConfig_URLs(t *testing.T) {
	for text, want := range map[string]string{
		"http://a.test":              "",
		"HTTPS://a.test:65535/b/":    "",
		"http://[::1]:80":            "",
		"http://a.test:65536":        `url: "http://a.test:65536" has no port that there is`,
		"http://a.test:-1":           `url: "http://a.test:-1" is not a URL such as "http://orders.internal:8080"`,
		"a.test:80":                  `url: "a.test:80" is not a URL such as "http://orders.internal:8080"`,
		"//a.test":                   `url: "//a.test" is not a URL such as "http://orders.internal:8080"`,
		"http:a.test":                `url: "http:a.test" is not a URL such as "http://orders.internal:8080"`,
		"http://:80":                 `url: "http://:80" is not a URL such as "http://orders.internal:8080"`,
		"http://a.test?":             `url: "http://a.test?" must end with its path`,
		"http://u:secret@a.test":     "url: it names a user, which the gateway would not send",
		"ftp://u:secret@a.test":      `url: "…@a.test" is not a URL such as "http://orders.internal:8080"`,
		"http://u:secret@a.test:x":   `url: "…@a.test:x" is not a URL such as "http://orders.internal:8080"`,
		"http://u:sec@ret@a.test/%z": `url: "…@a.test/%z" is not a URL such as "http://orders.internal:8080"`,
	} {
		var wrong complaints
		readURL(&wrong, "url", text)
		got := ""
		if len(wrong) > 0 {
			got = wrong[0].Error()
		}
		assert.Equal(t, want, got, text)
	}
}

// A config that is not refused is one that a gateway can be made of.
func FuzzConfig(f *testing.F) {
	example, err := os.ReadFile("gateway.json")
	require.NoError(f, err)
	f.Add(string(example))
	f.Add(smallest)
	f.Add(`{"slots": 4294967296, ` + smallest[1:])
	f.Add(`{"services": {"a": {"prefix": "/", "url": "http://[::1]:1/%2f"}, "b": {"prefix": "/b/", "url": "https://b.test"}}}`)
	f.Fuzz(func(t *testing.T, doc string) {
		c, err := parseConfig([]byte(doc))
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NotEmpty(t, c.services)
		for _, s := range c.services {
			require.Positive(t, s.base)
			require.LessOrEqual(t, s.base, s.max)
		}
		_, err = newDaemon(c, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
	})
}
