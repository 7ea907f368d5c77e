package canary

import (
	"math"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/slidingwindow"
)

// latencies are how long stable's calls took lately: in the minute under way, and in the
// one before it.
type latencies struct {
	now    *slidingwindow.Histogram
	before *slidingwindow.Histogram // nil in the first minute
	until  int64
}

const (
	latencySpan  = time.Minute
	latencyCalls = 100 // fewer calls have no quantile
)

func newLatencies(before *slidingwindow.Histogram, now int64) *latencies {
	return &latencies{sluice.Must(slidingwindow.NewHistogram(16)), before, clock.After(now, latencySpan)}
}

// quantile is the time within which a share q of the calls ended; ok is false if there
// were too few to say.
func (l *latencies) quantile(q float64) (d time.Duration, ok bool) {
	all := l.now
	if l.before != nil {
		all = sluice.Must(slidingwindow.NewHistogram(16))
		for _, h := range []*slidingwindow.Histogram{l.now, l.before} {
			_ = all.Merge(h) // of one shape, so it merges
		}
	}
	d = all.Quantile(q)
	return d, all.Count() >= latencyCalls && d < math.MaxInt64
}

// tune brings what is slow up to date. It is called with mu held.
func (j *Judge) tune(now int64) {
	recent := j.recent.Load()
	if now >= recent.until {
		recent = newLatencies(recent.now, now)
		j.recent.Store(recent)
	}
	s, c := j.stage.Load(), j.config.Load()
	if s == nil {
		return
	}
	limit := int64(never)
	switch {
	case now < s.warmUntil || c.SlowAbove == 0:
	case c.SlowAbove != Auto:
		limit = int64(c.SlowAbove)
	default:
		if d, ok := recent.quantile(c.SlowQuantile); ok {
			limit = int64(d)
		}
	}
	s.slowAbove.Store(limit)
}
