package adaptive

import (
	"math"
	"time"
)

// A survey is what a history says at one moment: the calls of all windows that
// still hold, put together.
type survey struct {
	grid
	calls    int64 // the cut ones too
	timedOut int64 // of these, by the Timeout's own limit

	finished, cut [maxBuckets]uint32
	// running is the share of calls that run longer than each bucket, by the
	// Kaplan–Meier estimate. Written by survive.
	running [maxBuckets]float64

	// Calls that finished and calls that timed out in the last two seconds or so.
	lateFinished, lateTimedOut int64
}

// survey fills s with what h knows at now: the whole short span, and then as much
// of the long one as it takes to have enough calls. It leaves out what an outage
// spoilt that is over, and stops where calls took more than twice as long as they
// typically do now, for that time is past.
func (h *history) survey(now, enough int64, s *survey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.grid = h.grid
	outages := h.outages()
	for _, w := range h.ring {
		if now-w.end < 2*h.second() {
			s.lateFinished += w.answered()
			s.lateTimedOut += int64(w.timedOut.Load())
		}
		if now-w.start < 4*h.second() || !h.spoilt(w, outages) {
			s.addWindow(w)
		}
	}
	typical := s.typical()
	last := now / h.sheetWidth
	for index := last; index > last-int64(len(h.sheets)) && index >= 0 && s.calls < enough; index-- {
		sh := h.sheetAt(index)
		if sh.index != index {
			continue
		}
		if then := sh.typical(); typical > 0 && then > 2*typical {
			return
		}
		s.addSheet(sh)
	}
}

// quantiles is how long calls take as of now.
func (h *history) quantiles(now int64) Quantiles {
	var s survey
	h.survey(now, 10_000, &s)
	s.survive()
	q := Quantiles{Calls: int(s.calls)}
	q.P50, _ = s.quantile(0.5)
	q.P95, _ = s.quantile(0.95)
	q.P99, _ = s.quantile(0.99)
	q.P999, _ = s.quantile(0.999)
	return q
}

func (s *survey) addWindow(w *window) {
	s.timedOut += int64(w.timedOut.Load())
	for i := range w.finished {
		s.count(&s.finished, w.grid, i, w.finished[i].Load())
	}
	if cut := w.cut.Load(); cut != nil {
		for i := range *cut {
			s.count(&s.cut, w.grid, i, (*cut)[i].Load())
		}
	}
}

func (s *survey) addSheet(sh *sheet) {
	s.timedOut += int64(sh.timedOut)
	for i, n := range sh.finished {
		s.count(&s.finished, sh.grid, i, n)
	}
	for i, n := range sh.cut {
		s.count(&s.cut, sh.grid, i, n)
	}
}

// count adds n calls of bucket i of g to one of the survey's counts.
func (s *survey) count(counts *[maxBuckets]uint32, g grid, i int, n uint32) {
	if n > 0 {
		c := &counts[g.moved(i, s.grid)]
		*c = sum(*c, n)
		s.calls += int64(n)
	}
}

// typical is the median of the calls that finished, 0 if they are too few to tell.
func (s *survey) typical() time.Duration { return typical(s.grid, s.finished[:s.n]) }

func (sh *sheet) typical() time.Duration { return typical(sh.grid, sh.finished) }

func typical(g grid, finished []uint32) time.Duration {
	const enough = 20
	var all, seen int64
	for _, n := range finished {
		all += int64(n)
	}
	if all < enough {
		return 0
	}
	for i, n := range finished {
		if seen += int64(n); 2*seen >= all {
			return g.upper(i)
		}
	}
	return 0
}

// survive works out running: a call that was cut off counts among those that run
// longer than the buckets up to its own, and after that not at all (Kaplan, Meier:
// "Nonparametric estimation from incomplete observations", 1958).
func (s *survey) survive() {
	atRisk, running := float64(s.calls), 1.0
	for i := range int(s.n) {
		finished := float64(s.finished[i])
		if finished > 0 {
			running *= 1 - finished/atRisk
		}
		s.running[i] = running
		atRisk -= finished + float64(s.cut[i])
	}
}

// quantile is the time within which a share q of the calls finishes. It is false if
// those that finished do not reach q: the answer is longer than anything that was
// let run.
func (s *survey) quantile(q float64) (time.Duration, bool) {
	const slack = 1e-11 // more than the rounding of all factors, less than a call in all there can be
	for i := range int(s.n) {
		if s.finished[i] > 0 && s.running[i] <= 1-q+slack {
			return s.upper(i), true
		}
	}
	return 0, false
}

// tail is the quantile 1 − eps as far as so few calls can tell. Ten calls at least
// should lie beyond a quantile that is read off; where eps is less than that, the
// rest is extrapolated, a decade at most, by the tail index between that quantile
// and one a decade below (Weissman: "Estimation of parameters and large quantiles
// based on the k largest observations", 1978).
func (s *survey) tail(eps float64) (time.Duration, bool) {
	p := max(eps, min(10/float64(s.calls), 0.2))
	a, ok := s.quantile(1 - p)
	if !ok || p <= eps {
		return a, ok
	}
	p0 := min(0.5, 10*p)
	b, _ := s.quantile(1 - p0) // there is one, since there is a higher one
	index := math.Log(float64(a)/float64(b)) / math.Log(p0/p)
	return scaled(a, math.Pow(min(10, p/eps), index)), true
}

// longer is how many calls finished that took longer than d, but for its bucket.
func (s *survey) longer(d time.Duration) (n int) {
	for _, k := range s.finished[s.index(d)+1 : s.n] {
		n += int(k)
	}
	return n
}

// scaled is d·k, or the longest Duration if that is less.
func scaled(d time.Duration, k float64) time.Duration {
	if f := float64(d) * k; f < math.MaxInt64 {
		return time.Duration(f)
	}
	return math.MaxInt64
}
