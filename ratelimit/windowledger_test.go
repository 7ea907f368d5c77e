package ratelimit

import (
	"slices"
	"sort"
	"testing"
)

// A windowLedger is the oracle of the windows: it keeps every token that was ever taken,
// with its time, and finds everything out by looking.
type windowLedger struct{ times []int64 }

// take enters n tokens at now; they need not come in order.
func (l *windowLedger) take(n, now int64) {
	for range n {
		l.times = append(l.times, now)
	}
}

// giveBack strikes n tokens of now out.
func (l *windowLedger) giveBack(n, now int64) {
	for range n {
		if i := slices.Index(l.times, now); i >= 0 {
			l.times = slices.Delete(l.times, i, i+1)
		}
	}
}

// within is how many tokens were taken after from, up to to.
func (l *windowLedger) within(from, to int64) (n int64) {
	for _, t := range l.times {
		if from < t && t <= to {
			n++
		}
	}
	return n
}

// worst is the most tokens that any window of that width has, which includes its
// beginning and not its end.
func (l *windowLedger) worst(width int64) (most int) {
	times := slices.Sorted(slices.Values(l.times))
	for i, from := range times {
		end := sort.Search(len(times), func(k int) bool { return times[k] >= from+width })
		most = max(most, end-i)
	}
	return most
}

// FuzzWindows lets the bytes choose who asks for how much when, and who gives it back.
// A SlidingWindow admits no more than its limit in a window that it counts, and 2L − 1 in
// any; the others no more than the limit in any.
func FuzzWindows(f *testing.F) {
	f.Add(int64(5), []byte{255, 0, 0, 0, 0, 0, 1, 20, 20, 20, 20, 20})
	f.Add(int64(3), []byte{0, 99, 99, 99, 2, 255, 0, 3, 3, 3})
	f.Add(int64(1), []byte("everything comes at once, and then nothing does for long"))
	f.Fuzz(func(t *testing.T, limit int64, steps []byte) {
		const width = 256
		limit = 1 + (limit&0xff)%20
		window, log, strict := slidingOf(Rate{limit, width}, nil), logOf(Rate{limit, width}, nil), strictOf(Rate{limit, width}, 0.5)
		for name, tc := range map[string]struct {
			most     int64
			take     func(key uint64, n, now int64) Decision
			giveBack func(key uint64, d Decision, now int64)
		}{
			"SlidingWindow": {2*limit - 1, window.take, window.giveBack},
			"SlidingLog":    {limit, log.take, log.giveBack},
			"StrictWindow": {limit, strict.bucket.take, func(_ uint64, d Decision, now int64) {
				b := &strict.bucket.cur.Load().own
				b.giveBack(d.n*b.unit, d.mark, at(now))
			}},
		} {
			now, kept := int64(1), &windowLedger{}
			var last Decision
			var lastAt int64
			for i, step := range steps[:min(len(steps), 200)] {
				if step%16 == 15 && last.n > 0 {
					tc.giveBack(0, last, now)
					kept.giveBack(last.n, lastAt)
					last = Decision{}
					continue
				}
				now += int64(step)
				if i%3 == 0 {
					now -= int64(step) / 2 // and sometimes late
				}
				d := tc.take(0, 1+int64(step)%limit, now)
				if !d.OK() {
					continue
				}
				last, lastAt = d, now
				if name != "StrictWindow" {
					lastAt = d.mark // which is not before what others have seen
				}
				kept.take(d.n, lastAt)
			}
			if worst := kept.worst(width); int64(worst) > tc.most {
				t.Fatalf("%s: %d of %d in a window: %v", name, worst, limit, kept.times)
			}
			for _, at := range kept.times {
				start := at / width * width
				if n := kept.within(start-1, start+width-1); name == "SlidingWindow" && n > limit {
					t.Fatalf("%d of %d in a window that it counts: %v", n, limit, kept.times)
				}
			}
		}
	})
}
