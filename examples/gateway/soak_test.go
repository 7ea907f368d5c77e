package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/breaker"
)

var soak = flag.Duration("soak", 2*time.Second, "how long TestSoak keeps the gateway under load")

// A level is what the process holds.
type level struct {
	goroutines  int
	descriptors int // 0 where they cannot be counted
	heap        uint64
}

func (l level) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %.1f MiB of heap", l.goroutines, l.descriptors, float64(l.heap)/(1<<20))
}

func measure() level {
	runtime.GC()
	runtime.GC() // the second empties what the first has left in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/proc/self/fd")
	return level{runtime.NumGoroutine(), len(open), m.HeapAlloc}
}

// The gateway at full load while its backends are killed, hang, reset connections and
// break off, and its clients leave: everybody gets the answer that is right or a clean
// error, and when it is over the process holds what it held before.
func TestSoak(t *testing.T) {
	first := &shaky{} // brings what the runtime needs for networks, and keeps
	require.NoError(t, first.listen())
	first.close()
	before := measure()
	const slots, crowd = 48, 64
	var backends []*shaky
	var services []string
	c := &customers{}
	for _, name := range []string{"a", "b", "c"} {
		s := &shaky{}
		require.NoError(t, s.listen())
		backends = append(backends, s)
		services = append(services, fmt.Sprintf(`%q: {"prefix": "/%s", "url": "http://%s"}`, name, name, s.address))
		c.prefixes = append(c.prefixes, "/"+name)
	}
	config, err := parseConfig([]byte(fmt.Sprintf(`{
		"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "slots": %d, "report": "100ms",
		"defaults": {
			"timeout": {"base": "250ms"},
			"transport": {"body_idle_timeout": "300ms"},
			"breaker": {
				"rules": [{"kind": "slow_call_ratio", "slower_than": "200ms", "ratio": 0.5}, {"kind": "error_ratio", "ratio": 0.5}],
				"window": "1s", "open_for": "100ms", "backoff_factor": 1, "probes": [1, 5]
			}
		},
		"services": {%s}
	}`, slots, strings.Join(services, ","))))
	require.NoError(t, err)
	d, err := newDaemon(config, slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug})))
	require.NoError(t, err)
	require.NoError(t, d.listen())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	end := make(chan error, 1)
	go func() { end <- d.serve(ctx) }()
	c.gateway = d.front.Addr().String()
	transport := &http.Transport{MaxIdleConnsPerHost: crowd}
	c.client = &http.Client{Transport: transport}
	rest := func() {
		transport.CloseIdleConnections()
		for _, l := range d.lanes {
			l.base.CloseIdleConnections()
		}
	}

	// What is made once is made before the measurement.
	warm, cool := context.WithTimeout(t.Context(), time.Second)
	c.run(warm, crowd)
	cool()
	begin := settled(rest, level{}, time.Second)
	t.Logf("at the beginning %v", begin)

	spell := 200 * time.Millisecond
	if testing.Short() {
		spell /= 4
	}
	load, over := context.WithCancel(t.Context())
	defer over()
	go func() { // a busy machine needs longer until everything has happened
		defer over()
		for start := time.Now(); time.Since(start) < *soak || len(c.unmet()) > 0 && time.Since(start) < *soak+time.Minute; {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	work, enough := context.WithCancel(t.Context())
	var suffering sync.WaitGroup
	for _, s := range backends {
		suffering.Go(func() { assert.NoError(t, s.suffer(load, spell)) })
	}
	go func() { suffering.Wait(); enough() }()
	c.run(work, crowd)

	finish := settled(rest, begin, 20*time.Second)
	t.Logf("at the end       %v", finish)
	for i, name := range endings {
		t.Logf("%-15s %d", name, c.ends[i].Load())
	}
	for _, f := range faults {
		var met int64
		for _, s := range backends {
			met += s.met[f].Load()
		}
		t.Logf("met %-15s %d", f, met)
	}
	assert.LessOrEqual(t, finish.goroutines, begin.goroutines, "%s", stacks())
	assert.LessOrEqual(t, finish.descriptors, begin.descriptors)
	assert.LessOrEqual(t, finish.heap, begin.heap+4<<20)
	assert.Empty(t, c.unmet())
	if odd := c.oddity.Load(); odd != nil {
		assert.Failf(t, "an answer that nobody may get", "%d times, such as %s", c.ends[wrong].Load(), *odd)
	}
	for _, l := range d.lanes {
		s := l.breaker.Snapshot()
		assert.Zero(t, s.Probe.Issued-s.Probe.Good-s.Probe.Bad, "a seat of %s is taken", s.Name)
		assert.Zero(t, s.Totals.Lost, "a permit of %s was lost", s.Name)
		assert.Zero(t, s.Panics)
	}

	inside := d.gate.Snapshot()
	assert.Zero(t, inside.InFlight.Now)
	assert.Zero(t, inside.Drain.InFlight)

	// With no faults left, all breakers find that out.
	assert.Eventually(t, func() bool {
		c.ask()
		for _, l := range d.lanes {
			if l.breaker.State() != breaker.Closed {
				return false
			}
		}
		return true
	}, 30*time.Second, time.Millisecond)

	// The house can be filled to the last place, and no further.
	var guests []net.Conn
	for range slots {
		guest, err := net.Dial("tcp", c.gateway)
		require.NoError(t, err)
		defer guest.Close()
		guests = append(guests, guest)
		io.WriteString(guest, "POST /a/1/x HTTP/1.1\r\nHost: gateway.test\r\nContent-Length: 9\r\n\r\nhalf")
	}
	require.Eventually(t, func() bool { return d.gate.Snapshot().InFlight.Now == slots }, 30*time.Second, time.Millisecond)
	assert.Equal(t, refused, c.get(t.Context(), "/a/1/x", 1, "x", nil))
	for _, guest := range guests {
		guest.Close()
	}
	require.Eventually(t, func() bool { return d.gate.Snapshot().InFlight.Now == 0 }, 30*time.Second, time.Millisecond)
	assert.Equal(t, slots, d.gate.Snapshot().InFlight.Peak)
	rest()

	stop()
	require.NoError(t, <-end)
	for _, s := range backends {
		s.close()
	}
	after := settled(rest, before, 20*time.Second)
	t.Logf("at last          %v", after)
	assert.LessOrEqual(t, after.goroutines, before.goroutines, "%s", stacks())
	assert.LessOrEqual(t, after.descriptors, before.descriptors)
}

// settled measures when no more is held than in want or, if that does not come, when
// nothing has changed for a time.
func settled(rest func(), want level, still time.Duration) level {
	var last level
	for since := time.Now(); ; {
		rest()
		now := measure()
		if now.goroutines <= want.goroutines && now.descriptors <= want.descriptors || time.Since(since) > still {
			return now
		}
		if now.goroutines != last.goroutines || now.descriptors != last.descriptors {
			since = time.Now()
		}
		last = now
		time.Sleep(25 * time.Millisecond)
	}
}

// stacks tells what all goroutines do.
func stacks() string {
	var b strings.Builder
	pprof.Lookup("goroutine").WriteTo(&b, 1)
	return b.String()
}
