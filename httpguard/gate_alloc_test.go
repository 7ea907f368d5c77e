package httpguard

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluicego/sluice/breaker"
)

// Somebody who has to know the status needs a writer, and that is all. The writers below
// are those that there are: with the methods of HTTP/1, of HTTP/2 (which a test cannot
// tell from a recorder's) and of none.
func TestAllocs_OneWhereTheStatusMattersAndNoneElsewhere(t *testing.T) {
	rules := []breaker.Option{
		breaker.WithSlowCallRatio(time.Second, 0.5), breaker.WithErrorRatio(1), breaker.WithErrorCount(1 << 30),
		breaker.WithMinRequests(1 << 30), breaker.WithWindow(time.Hour, 10), // no bucket is renewed meanwhile
	}
	one, group := newBreaker(t, rules...), newGroup(t, rules...)
	mux := http.NewServeMux()
	mux.Handle("GET /path", http.NotFoundHandler())
	for name, c := range map[string]struct {
		opts []Option
		want float64
	}{
		"nothing":              {nil, 0},
		"bound":                {[]Option{WithMaxInFlight(10)}, 0},
		"drain":                {[]Option{WithDrain(new(Drain)), WithMaxInFlight(10)}, 0},
		"no breaker":           {[]Option{WithBreakers(nil, ByPattern)}, 0},
		"no route":             {[]Option{WithBreakers(group, KeyFunc(func(*http.Request) string { return "" }))}, 0},
		"exempt":               {[]Option{WithBreaker(one), WithExempt("/path", "GET /healthz")}, 0},
		"one breaker":          {[]Option{WithBreaker(one)}, 1},
		"by pattern":           {[]Option{WithBreakers(group, ByPattern)}, 1},
		"by route":             {[]Option{WithBreakers(group, ByRoute(mux))}, 1},
		"all but the deadline": {[]Option{WithBreakers(group, ByPattern), WithMaxInFlight(10), WithDrain(new(Drain)), WithExempt("/healthz")}, 1},
	} {
		for status, next := range map[int]http.Handler{200: writing(200), 500: writing(500), 404: writing(404)} {
			for kind, w := range map[string]http.ResponseWriter{"HTTP/1": &silent{tcpLike{plain: newPlain()}}, "plain": silentPlain{http.Header{}}} {
				h := newGate(t, c.opts...).Wrap(next)
				r := incoming(t.Context())
				r.Pattern = "GET /path"
				assert.Equal(t, c.want, testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }), "%s, %d, %s", name, status, kind)
			}
		}
	}
}

// silent and silentPlain are writers that keep nothing.
type silent struct{ tcpLike }

func (*silent) WriteHeader(int) {}

type silentPlain struct{ header http.Header }

func (w silentPlain) Header() http.Header       { return w.header }
func (silentPlain) WriteHeader(int)             {}
func (silentPlain) Write(p []byte) (int, error) { return len(p), nil }
