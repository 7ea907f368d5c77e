package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// Each report is about what has happened since the one before.
func TestReport_TellsWhatHasHappenedSinceTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := breaker.New("orders",
			breaker.WithSlowCallRatio(500*time.Millisecond, 1), breaker.WithErrorCount(3), breaker.WithOpenFor(time.Hour))
		require.NoError(t, err)
		var log bytes.Buffer
		l := &lane{
			upstream: upstream{name: "orders", url: &url.URL{}, breaker: b},
			config:   serviceConfig{settings: defaultSettings()},
			log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})).With("service", "orders"),
		}
		call := func(took time.Duration, err error) {
			b.Do(t.Context(), func(context.Context) error { time.Sleep(took); return err })
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { l.report(ctx, 10*time.Second); close(done) }()

		for range 5 {
			call(0, nil)
		}
		call(time.Second, nil)
		call(0, errors.New("broken"))
		call(0, sluice.Ignore(errors.New("not its fault")))
		time.Sleep(10 * time.Second)
		for range 4 {
			call(0, errors.New("broken"))
		}
		time.Sleep(20 * time.Second)
		cancel()
		<-done
		assert.Equal(t, `level=INFO msg=report service=orders state=closed requests=8 refused=0 failure_rate=0.1429 slow_rate=0.1429 timeout=1s
level=INFO msg=report service=orders state=open requests=4 refused=1 failure_rate=1 slow_rate=0 timeout=1s
level=INFO msg=report service=orders state=open requests=0 refused=0 failure_rate=0 slow_rate=0 timeout=1s
`, log.String())
	})
}

func TestReport_IntervalOfZeroIsNever(t *testing.T) {
	(&lane{}).report(t.Context(), 0)
}
