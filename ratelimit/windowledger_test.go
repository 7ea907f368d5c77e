package ratelimit

import (
	"slices"
	"sort"
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
