package breaker

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/metrics"
)

// A breaker that is not there is no obstacle: every method works on nil.
func TestNilBreakerLetsEverythingPass(t *testing.T) {
	var b *Breaker
	assert.ErrorIs(t, b.Do(t.Context(), failing), errDown)
	p, err := b.Allow(t.Context())
	require.NoError(t, err)
	p.Done(errDown)
	p.Settle(sluice.Failure)
	p.Cancel()
	p.Close()
	assert.NoError(t, b.Peek())
	assert.Empty(t, b.Name())
	assert.Equal(t, Closed, b.State())
	assert.Equal(t, Closed, b.Snapshot().State)
	assert.Equal(t, 1.0, b.Snapshot().Share)
	assert.NoError(t, b.Force(ForcedOpen, 0))
	b.Unforce()
	assert.NoError(t, b.Trip(time.Hour))
	b.Reset()
	assert.NoError(t, b.Update(DefaultConfig()))
	_ = b.Config()
	assert.NoError(t, b.Probe(t.Context(), failing))
	b.Collect(func(metrics.Sample) bool { t.Error("a sample of nothing"); return true })
	_ = b.View()
	v, err := sluice.Call(t.Context(), b, value)
	assert.NoError(t, err)
	assert.Equal(t, 7, v)
	assert.NoError(t, sluice.Chain(b, b).Do(t.Context(), nothing))
	var zero Permit
	zero.Done(nil)
	zero.Cancel()
	zero.Close()
}

// Probe recovers a breaker without a real call at risk: from closed it has nothing
// to do, and it waits its turn like anybody.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, WithErrorCount(1))
		asked := 0
		ping := func(result error) func(context.Context) error {
			return func(ctx context.Context) error {
				asked++
				assert.True(t, sluice.IsProbe(ctx))
				return result
			}
		}
		require.NoError(t, b.Probe(t.Context(), ping(errDown)))
		assert.Zero(t, asked, "nothing to do")
		require.ErrorIs(t, b.Do(t.Context(), failing), errDown)
		require.ErrorIs(t, b.Probe(t.Context(), ping(nil)), ErrOpen)
		assert.Zero(t, asked, "open, before its deadline")
		time.Sleep(5 * time.Second)
		require.ErrorIs(t, b.Probe(t.Context(), ping(errDown)), errDown)
		assert.Equal(t, Open, b.State())
		time.Sleep(10 * time.Second)
		permit, err := b.Allow(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, b.Probe(t.Context(), ping(nil)), ErrOpen)
		assert.Equal(t, 1, asked, "another probe is out")
		permit.Cancel()
		require.NoError(t, b.Probe(t.Context(), ping(nil)))
		assert.Equal(t, 2, asked)
		assert.Equal(t, Closed, b.State())
	})
}

// The ctx of a probe says that it is one, however it is run; others do not.
func TestIsProbe(t *testing.T) {
	s := newStory(t, WithErrorCount(1))
	runs := map[string]func(func(context.Context) error) error{
		"Do":    func(call func(context.Context) error) error { return s.b.Do(t.Context(), call) },
		"Chain": func(call func(context.Context) error) error { return sluice.Chain(s.b, build(t)).Do(t.Context(), call) },
		"Call": func(call func(context.Context) error) error {
			_, err := sluice.Call(t.Context(), s.b, func(ctx context.Context) (int, error) { return 0, call(ctx) })
			return err
		},
	}
	for name, run := range runs {
		for _, probe := range []bool{false, true} {
			if probe {
				require.NoError(t, s.b.Trip(time.Nanosecond))
				for s.b.State() == Open {
				}
			}
			require.NoError(t, run(func(ctx context.Context) error {
				assert.Equal(t, probe, sluice.IsProbe(ctx), name)
				return nil
			}))
			require.Equal(t, Closed, s.b.State())
		}
	}
}

// What the snapshot says in words, with the numbers.
func TestSnapshot_ReasonInWordsAndNumbers(t *testing.T) {
	slow := took(101*time.Millisecond, nil)
	s := newStory(t, WithSlowCallRatio(100*time.Millisecond, 0.5, MinRequests(200)), WithErrorCount(5), WithWindow(time.Hour, 10))
	assert.Equal(t, "no calls yet", s.snap().Reason)
	s.tell(step{0, times(60, S), Closed}, step{1, times(20, slow), Closed})
	assert.Equal(t, "slow 25 % of 50 %, 20 of 80 calls, below min requests (80/200)", s.snap().Reason)
	s.tell(step{5, times(4, F), Closed})
	assert.Equal(t, "4 of 5 errors in 84 calls", s.snap().Reason, "the one that is closest")
	s.tell(step{6, times(32, S), Closed}, step{10, times(84, slow), Open})
	assert.Equal(t, "slow 52 % of 50 %, 104 of 200 calls", s.snap().Reason)
	assert.EqualValues(t, 104, s.last().Cause.Bad)
	s.tell(step{3600, look, HalfOpen})
	assert.Contains(t, s.snap().Reason, "over")
	s.tell(step{3600, A("probe"), HalfOpen})
	assert.Contains(t, s.snap().Reason, "stage 1 of 1")
}

// Levels: to open and overrides warn, what goes well informs, a refused
// configuration is an error, refused calls are for debugging and not one each.
func TestLogger_Levels(t *testing.T) {
	var out bytes.Buffer
	s := newStory(t, WithErrorCount(1), WithLogger(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	s.tell(
		step{0, F, Open},
		step{1, times(1000, R), Open},
		step{5, S, Closed},
		step{6, forced(ForcedOpen), Closed},
		step{6, unforced, Closed},
		step{6, updated(func(c *Config) { c.OpenFor *= 2 }), Closed},
		step{6, updated(func(*Config) {}), Closed},
	)
	require.Error(t, s.b.Update(Config{}))
	var levels []string
	for line := range strings.Lines(out.String()) {
		var record struct {
			Level  string
			Sluice struct {
				Resource, From, To, Cause, Reason, Error string
				Requests                                 int64
			}
		}
		require.NoError(t, json.Unmarshal([]byte(line), &record), line)
		require.Equal(t, "payments", record.Sluice.Resource, line)
		levels = append(levels, record.Level)
		switch len(levels) {
		case 1:
			assert.Equal(t, "rule_tripped", record.Sluice.Cause)
			assert.Equal(t, "closed", record.Sluice.From)
			assert.Equal(t, "open", record.Sluice.To)
			assert.EqualValues(t, 1, record.Sluice.Requests)
		case 2:
			assert.Equal(t, ReasonOpen, record.Sluice.Reason)
		}
	}
	assert.Equal(t, []string{"WARN", "DEBUG", "INFO", "INFO", "WARN", "WARN", "INFO", "ERROR"}, levels)
}

// A logger is a listener like others: the call that changes a state does not end
// with it.
func TestLogger_ThatPanicsEndsNoCall(t *testing.T) {
	b := build(t, WithErrorCount(1), WithLogger(slog.New(brokenHandler{})))
	assert.NotPanics(t, func() {
		assert.ErrorIs(t, b.Do(t.Context(), failing), errDown)
	})
	assert.Equal(t, Open, b.State())
}

type brokenHandler struct{}

func (brokenHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (brokenHandler) Handle(context.Context, slog.Record) error { panic("the disk is full") }
func (h brokenHandler) WithAttrs([]slog.Attr) slog.Handler      { return h }
func (h brokenHandler) WithGroup(string) slog.Handler           { return h }

// Every sample is described, named after its breaker, and tells what happened; a
// counter never goes down.
func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, WithErrorCount(3), WithSlowCallRatio(time.Second, 1))
		last := map[string]float64{}
		collect := func() map[string]float64 {
			got := map[string]float64{}
			b.Collect(func(s metrics.Sample) bool {
				require.NoError(t, s.Desc.Validate())
				require.Len(t, s.Labels, len(s.Desc.Labels), s.Desc.Name)
				require.Equal(t, "payments", s.Labels[0])
				name := strings.Join(append([]string{s.Desc.Name}, s.Labels[1:]...), " ")
				require.NotContains(t, got, name, "twice")
				got[name] = s.Value
				if s.Desc.Kind == metrics.Counter {
					require.GreaterOrEqual(t, s.Value, last[name], name)
				}
				return true
			})
			last = got
			return got
		}
		collect()
		for range 2 {
			require.ErrorIs(t, b.Do(t.Context(), failing), errDown)
			require.NoError(t, b.Do(t.Context(), nothing))
			collect()
		}
		_ = b.Do(t.Context(), func(context.Context) error { return sluice.Mark(errDown, sluice.Throttled) })
		_ = b.Do(t.Context(), func(context.Context) error { time.Sleep(2 * time.Second); return sluice.Ignore(errDown) })
		_ = b.Do(t.Context(), func(context.Context) error { time.Sleep(2 * time.Second); return nil })
		require.ErrorIs(t, b.Do(t.Context(), failing), errDown)
		require.ErrorIs(t, b.Do(t.Context(), nothing), ErrOpen)
		time.Sleep(3 * time.Second)
		got := collect()
		for name, want := range map[string]float64{
			"calls success": 3, "calls failure": 3, "calls throttled": 1, "calls ignored": 1, "slow_calls": 1,
			"rejected breaker open": 1, "rejected breaker half_open": 0,
			"breaker_state open": 1, "breaker_state closed": 0, "breaker_transitions open": 1, "breaker_open_seconds": 3, "breaker_admitted_ratio": 0,
		} {
			assert.Equal(t, want, got[name], name)
		}
		time.Sleep(2 * time.Second)
		require.NoError(t, b.Do(t.Context(), nothing))
		time.Sleep(time.Hour)
		got = collect()
		for name, want := range map[string]float64{
			"calls success": 4, "calls failure": 3, "breaker_state closed": 1, "breaker_transitions closed": 1, "breaker_transitions half_open": 1, "breaker_open_seconds": 5, "breaker_admitted_ratio": 1,
		} {
			assert.Equal(t, want, got[name], name)
		}
		n := 0
		b.Collect(func(metrics.Sample) bool { n++; return false })
		assert.Equal(t, 1, n, "a reader that has enough")
		data, err := json.Marshal(b.View())
		require.NoError(t, err)
		assert.Contains(t, string(data), `"state":"closed"`)
	})
}
