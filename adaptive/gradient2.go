package adaptive

import "time"

// gradient2 is the tracker of Gradient2: the limit follows the ratio of the average time
// of a call over many windows to that of the last one (after Netflix's
// concurrency-limits). It differs in three things: drops lower the limit, it does not
// grow when calls do not need it, and room for more is added only while calls are as fast
// as they were.
type gradient2 struct {
	long    float64 // the average, in nanoseconds
	windows int     // that it is of, at most gradientWindows
}

const (
	gradientWindows   = 600
	gradientWarmup    = 10  // windows whose plain mean the average begins with
	gradientTolerance = 1.5 // how much slower than the average is as fast
	gradientSmoothing = 0.2
	gradientRoom      = 4
)

func (g *gradient2) next(w *LimitWindow, r *LimitRule) float64 {
	if factor, ok := w.dropped(r.Tolerance); ok {
		return w.Limit * factor
	}
	if w.Calls == 0 {
		return w.Limit
	}
	short := float64(w.Took)
	g.add(short, r)
	gradient := min(max(gradientTolerance*g.long/short, 0.5), 1)
	limit := w.Limit
	switch {
	case gradient < 1:
		limit *= gradient
	case !w.needless():
		limit += gradientRoom
	}
	return w.Limit + gradientSmoothing*(limit-w.Limit)
}

// add takes a window into the average.
func (g *gradient2) add(short float64, r *LimitRule) {
	g.windows = min(g.windows+1, gradientWindows)
	weight := 2 / float64(gradientWindows+1)
	if g.windows <= gradientWarmup {
		weight = 1 / float64(g.windows)
	}
	g.long += (short - g.long) * weight
	if g.long > 2*short {
		g.long *= 0.95 // calls have become faster: forget sooner
	}
	if r.MaxHealthy > 0 {
		g.long = min(g.long, float64(r.MaxHealthy))
	}
}

func (g *gradient2) urgent(w *LimitWindow, r *LimitRule) bool {
	_, ok := w.dropped(r.Tolerance)
	return ok
}

func (g *gradient2) finding() limitFinding { return limitFinding{baseline: time.Duration(g.long)} }
