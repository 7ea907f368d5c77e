package breaker

import (
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/slidingwindow"
)

// windowSpec is the shape of one window and the slow limit that it counts by.
// Rules that agree on both share a window.
type windowSpec struct {
	span    time.Duration
	buckets int
	calls   int // if not 0, the window holds the last so many calls
	limit   int64
}

// windowSpecs lists the windows that c's rules need. The first is the breaker's
// own, which is there even if no rule looks at it.
func windowSpecs(c Config) []windowSpec {
	specs := []windowSpec{{c.Window, c.Buckets, c.CountWindow, 0}}
	for _, r := range c.Rules {
		if r.Kind != ConsecutiveFailures {
			specs = withSpec(specs, specFor(c, r))
		}
	}
	return specs
}

// specFor is the window that r wants; its limit is 0 if any will do.
func specFor(c Config, r Rule) windowSpec {
	if r.Over > 0 {
		return windowSpec{r.Over, c.Buckets, 0, int64(r.SlowerThan)}
	}
	return windowSpec{c.Window, c.Buckets, c.CountWindow, int64(r.SlowerThan)}
}

func withSpec(specs []windowSpec, want windowSpec) []windowSpec {
	for i, have := range specs {
		if have.serves(want) {
			return specs
		}
		if have.limit == 0 {
			have.limit = want.limit
			if have == want {
				specs[i] = want
				return specs
			}
		}
	}
	return append(specs, want)
}

// serves reports whether a window of this spec is the one that want asks for.
func (s windowSpec) serves(want windowSpec) bool {
	if want.limit == 0 {
		want.limit = s.limit
	}
	return s == want
}

// window is a time window or a window of calls.
type window struct {
	windowSpec
	counts *slidingwindow.Counts
	ring   *slidingwindow.Ring
}

// newWindow makes an empty window. Its spec has been validated. What leaves a
// time window goes to total, which may be nil.
func newWindow(spec windowSpec, total *slidingwindow.Totals) window {
	w := window{windowSpec: spec}
	if spec.calls > 0 {
		w.ring = sluice.Must(slidingwindow.NewRing(spec.calls))
	} else {
		w.counts = sluice.Must(slidingwindow.NewCountsInto(total, spec.span, spec.buckets))
	}
	return w
}

func (w *window) sum(now int64) slidingwindow.Sums {
	if w.ring != nil {
		return w.ring.Sum()
	}
	return w.counts.SumAt(now)
}

// windows is what one episode in Closed counts, the breaker's own window first.
type windows []window

// newWindows makes the windows of specs. Those that have already holds are taken
// over with what they have counted. Only the first one feeds the totals, so it is
// taken over as the first or not at all.
func (b *Breaker) newWindows(specs []windowSpec, have windows) windows {
	ws := make(windows, len(specs))
	for i, spec := range specs {
		var old *window
		if i == 0 {
			old = have[:min(1, len(have))].find(spec)
		} else {
			old = have[min(1, len(have)):].find(spec)
		}
		switch {
		case old != nil:
			ws[i] = *old
		case i == 0:
			ws[i] = newWindow(spec, &b.totals)
		default:
			ws[i] = newWindow(spec, nil)
		}
	}
	return ws
}

// find returns the window that serves spec, nil if there is none.
func (ws windows) find(spec windowSpec) *window {
	for i := range ws {
		if ws[i].serves(spec) {
			return &ws[i]
		}
	}
	return nil
}

// retire hands what the first window holds to the totals.
func (ws windows) retire() {
	if ws[0].counts != nil {
		ws[0].counts.Retire()
	}
}
