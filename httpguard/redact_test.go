package httpguard

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestC23_RedactedKeepsWhereAndLosesWho(t *testing.T) {
	const own = "https://alice:s3cret@api.test:8443/v1/pay?token=s3cret#s3cret"
	u, err := url.Parse(own)
	require.NoError(t, err)
	for text, want := range map[string]string{
		"":                                    "",
		"connection refused":                  "connection refused",
		own:                                   "https://api.test:8443/v1/pay",
		`Get "` + own + `": EOF`:              `Get "https://api.test:8443/v1/pay": EOF`,
		"no leave for alice:s3cret@api.test":  "no leave for api.test",
		"request /v1/pay?token=s3cret failed": "request /v1/pay failed",
		"via http://bob:s3cret@proxy.test:3128 to " + own + " (late)": "via http://proxy.test:3128 to https://api.test:8443/v1/pay (late)",
		"http://a.test?s3cret, http://b@b.test/?s3cret":               "http://a.test http://b.test/",
		"redis://:s3cret@store:6379/0":                                "redis://store:6379/0",
		"mail to a@b.test is fine":                                    "mail to a@b.test is fine",
		"://":                                                         "://",
	} {
		assert.Equal(t, want, redacted(u, errors.New(text)))
		assert.NotContains(t, redacted(nil, errors.New(strings.ReplaceAll(text, own, "http://x:s3cret@y.test/?s3cret"))), "s3cret@y")
	}
	assert.Empty(t, redacted(u, nil))

	quoted := &url.URL{Scheme: "http", Host: "a.test", RawQuery: `q="s3cret"`}
	assert.Equal(t, `Get "http://a.test": EOF`, redacted(quoted, &url.Error{Op: "Get", URL: quoted.String(), Err: errors.New("EOF")}))
}

// go-retryablehttp logged the password of URLs with basic authentication:
// https://github.com/hashicorp/go-retryablehttp/pull/158
func TestC23_NoLogTellsUserOrQuery(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	leaky := baseFunc(func(req *http.Request) (*http.Response, error) {
		return nil, &url.Error{Op: "Get", URL: req.URL.String(), Err: fmt.Errorf("proxy %s refused", req.URL)}
	})
	req := getFrom(t, t.Context(), "http://alice:s3cret@upstream.test/path?token=s3cret")
	for _, answer := range []error{nil, errors.New("no fallback for " + req.URL.String())} {
		tr := newTransport(t, leaky, WithBreakers(newGroup(t), ByHost), WithLogger(logger), WithFallback(func(req *http.Request, _ error) (*http.Response, error) {
			return Respond(req, 200, nil, nil), answer
		}))
		_, _ = tr.RoundTrip(req)
	}
	_, err := leaky(req)
	ProxyErrorHandler(logger)(httptest.NewRecorder(), req, err)
	assert.Equal(t, 3, strings.Count(out.String(), "\n"))
	assert.Contains(t, out.String(), "upstream.test")
	for _, secret := range []string{"alice", "s3cret", "token"} {
		assert.NotContains(t, out.String(), secret)
	}
}
