package breaker

import (
	"sync/atomic"
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
			specs = withSpec(specs, specFor(&c, &r))
		}
	}
	return specs
}

// specFor is the window that r wants; its limit is 0 if any will do.
func specFor(c *Config, r *Rule) windowSpec {
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

// sameShape reports whether the two differ in nothing but the slow limit.
func (s windowSpec) sameShape(t windowSpec) bool {
	t.limit = s.limit
	return s == t
}

// serves reports whether a window of this spec is the one that want asks for.
func (s windowSpec) serves(want windowSpec) bool {
	return s.sameShape(want) && (want.limit == 0 || want.limit == s.limit)
}

// window is a time window or a window of calls. The windows of an episode are a
// list, the breaker's own first; Update replaces the list.
type window struct {
	windowSpec
	counts *slidingwindow.Counts // nil if it is a window of calls
	calls  *callWindow
	next   *window
	// mixed says that the slow limit has been another one before, so that the slow
	// calls in here are good for no rule: slow rules have a window of their own.
	mixed bool
}

// callWindow is a window of calls.
type callWindow struct {
	*slidingwindow.Ring
	total *slidingwindow.Totals // gets what is counted here, if it is the breaker's own
	// lastAt is about when the last call came. Written by record, at most once a
	// second.
	lastAt atomic.Int64
}

// newWindows makes the windows that c needs. Those that have already holds are
// taken over with what they have counted. Only the breaker's own feeds the totals,
// so it is taken over as that or not at all.
func (b *Breaker) newWindows(c Config, have *window) *window {
	specs := windowSpecs(c)
	own := &window{windowSpec: specs[0]}
	var others *window
	if have != nil {
		others = have.next
	}
	if have == nil || !own.sameShape(have.windowSpec) {
		own = newWindow(specs[0], nil, &b.totals)
	} else {
		own.counts, own.calls, own.mixed = have.counts, have.calls, have.mixed
		switch have.limit {
		case 0, own.limit:
		default:
			// What was slow by the old limit must not trip by the new one, and what has
			// failed must not be forgotten: slow rules get a window of their own.
			own.mixed = true
		}
		if own.limit == 0 {
			own.limit = have.limit // nobody looks at slow calls now
		} else if own.mixed {
			specs = append(specs[:1:1], specs...)
		}
	}
	last := own
	for _, spec := range specs[1:] {
		last.next = newWindow(spec, others, nil)
		last = last.next
	}
	return own
}

// newWindow makes the window of a spec, which has been validated, or takes over
// the one in have that serves it.
func newWindow(spec windowSpec, have *window, total *slidingwindow.Totals) *window {
	w := &window{windowSpec: spec}
	if old := have.find(spec); old != nil {
		w.windowSpec, w.counts, w.calls = old.windowSpec, old.counts, old.calls
		return w
	}
	if spec.calls > 0 {
		w.calls = &callWindow{Ring: sluice.Must(slidingwindow.NewRing(spec.calls)), total: total}
	} else {
		w.counts = sluice.Must(slidingwindow.NewCountsInto(total, spec.span, spec.buckets))
	}
	return w
}

// find returns the first window of the list that serves spec, nil if none does.
func (w *window) find(spec windowSpec) *window {
	for ; w != nil; w = w.next {
		if w.serves(spec) && !(w.mixed && spec.limit != 0) {
			return w
		}
	}
	return nil
}

func (w *callWindow) record(now int64, e slidingwindow.Event) {
	if now-w.lastAt.Load() > int64(time.Second) {
		w.lastAt.Store(now)
	}
	w.Record(e)
	if w.total != nil {
		w.total.Record(e)
	}
}

func (w *window) sum(now int64) slidingwindow.Sums {
	if w.counts != nil {
		return w.counts.SumAt(now)
	}
	return w.calls.Sum()
}

// held is what the totals do not have yet.
func (w *window) held() slidingwindow.Sums {
	if w.counts != nil {
		return w.counts.Held()
	}
	return slidingwindow.Sums{}
}

// retire hands what w holds to the totals.
func (w *window) retire() {
	if w.counts != nil {
		w.counts.Retire()
	}
}
