package adaptive

import (
	"math"
	"slices"
	"time"
)

// The rules that ours is compared with, after their published sources, as LimitAlgorithms
// of a user's. They show what was published, not how fast the originals are.

// classicGradient2 is Gradient2 as Netflix has it: with room for four more whatever the
// gradient, and blind to drops.
type classicGradient2 struct{ average gradient2 }

func (g *classicGradient2) Next(w LimitWindow) float64 {
	if w.Calls == 0 {
		return 0
	}
	short := float64(w.Took)
	g.average.add(short, &LimitRule{})
	if w.needless() {
		return 0
	}
	gradient := min(max(1.5*g.average.long/short, 0.5), 1)
	return w.Limit*0.8 + 0.2*(w.Limit*gradient+4)
}

// classicVegas is Vegas as Netflix has it: every so many windows, 30 · limit of them, the
// baseline is whatever calls take just then.
type classicVegas struct {
	baseline time.Duration
	windows  int
}

func (v *classicVegas) Next(w LimitWindow) float64 {
	if v.windows++; v.baseline == 0 || w.Took < v.baseline || v.windows%30 == 0 {
		v.baseline = w.Took // sooner than 30 · limit, so that it shows in a quarter of an hour
	}
	step := math.Log10(max(w.Limit, 10))
	waiting := math.Ceil(w.Limit * (1 - float64(v.baseline)/float64(w.Took)))
	switch {
	case w.needless():
		return w.Limit
	case waiting <= step:
		return w.Limit + 6*step
	case waiting < 3*step:
		return w.Limit + step
	case waiting > 6*step:
		return w.Limit - step
	}
	return w.Limit
}

// averageBaseline is Vegas with an average of the last windows for a baseline, as
// failsafe-go's adaptive limiter has it (of the 90th percentile, over ten of them),
// without the correlations by which it saves itself in part.
type averageBaseline struct{ recent, baseline float64 }

func (a *averageBaseline) Next(w LimitWindow) float64 {
	p90 := float64(w.Quantile(0.9))
	if a.baseline == 0 {
		a.recent, a.baseline = p90, p90
	}
	a.recent += (p90 - a.recent) * 2 / 6
	a.baseline += (a.recent - a.baseline) * 2 / 11
	step := math.Log10(max(w.Limit, 10))
	waiting := w.Limit * (1 - a.baseline/a.recent)
	switch {
	case w.needless():
		return w.Limit
	case waiting > 6*step:
		return w.Limit - step
	case waiting < 3*step:
		return w.Limit + step
	}
	return w.Limit
}

// bbrProduct is the most calls in a tenth of a second × the shortest mean time that they
// took, of the last ten seconds, as a limit that always holds.
type bbrProduct struct{ rates, tooks []float64 }

func (b *bbrProduct) Next(w LimitWindow) float64 {
	b.rates = append(b.rates, float64(w.Calls)/w.Span.Seconds())
	b.tooks = append(b.tooks, math.Ceil(w.Took.Seconds()*1000)/1000)
	if len(b.rates) > 100 {
		b.rates, b.tooks = b.rates[1:], b.tooks[1:]
	}
	return math.Ceil(slices.Max(b.rates) * slices.Min(b.tooks))
}

// dagor is WeChat's rule: every second or 2 000 calls, it takes 5 % fewer if they waited
// for more than 20 ms on average, else 1 % more.
type dagor struct {
	share  float64
	calls  int
	queued time.Duration
	next   time.Duration
}

func (d *dagor) settled(since, queued time.Duration) {
	if since >= d.next || d.calls >= 2000 {
		if d.calls > 0 && d.queued/time.Duration(d.calls) > 20*ms {
			d.share *= 0.95
		} else {
			d.share = min(1, d.share+0.01)
		}
		d.calls, d.queued, d.next = 0, 0, since+time.Second
	}
	d.calls++
	d.queued += queued
}
