package adaptive

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// traffic remembers the tally of earlier ticks, for what happened in the last second,
// and how much was done at best in the last ten. It belongs to tick.
type traffic struct {
	marks [64]mark // a ring
	next  int      // where the next one goes
	n     int      // how many there are

	slices [20]slice // a ring, of half a second each
	newest int
	since  mark // when the slice under way began
}

// A mark is the tally at one time.
type mark struct {
	at int64
	counts
}

// A slice is what succeeded in some half a second.
type slice struct {
	until     int64 // 0: there is none
	perSecond float64
	took      float64 // the mean, in seconds
}

const (
	lately      = time.Second
	sliceLength = lately / 2
	// markEvery is the least distance of marks, so that the ring holds more than the last
	// second.
	markEvery = lately / 32
)

// add takes the tally at now.
func (t *traffic) add(now int64, c counts) {
	m := mark{now, c}
	if t.n == 0 {
		t.since = m
	}
	if last, ok := t.back(0); !ok || now >= clock.After(last.at, markEvery) {
		t.marks[t.next] = m
		t.next, t.n = (t.next+1)%len(t.marks), min(t.n+1, len(t.marks))
	}
	if now < clock.After(t.since.at, sliceLength) {
		return
	}
	if took := m.successes.since(t.since.successes).mean(); took.known {
		t.newest = (t.newest + 1) % len(t.slices)
		t.slices[t.newest] = slice{
			until:     now,
			perSecond: float64(m.succeeded-t.since.succeeded) / time.Duration(now-t.since.at).Seconds(),
			took:      took.value,
		}
	}
	t.since = m
}

// back returns the mark that is so many before the newest.
func (t *traffic) back(i int) (m mark, ok bool) {
	if i >= t.n {
		return mark{}, false
	}
	return t.marks[(t.next-1-i+len(t.marks))%len(t.marks)], true
}

// ago returns the newest mark that is at least d old, or the oldest if none is. The
// zero mark is returned if there is none at all.
func (t *traffic) ago(now int64, d time.Duration) (m mark) {
	for i := 0; i < t.n; i++ {
		if m, _ = t.back(i); clock.After(m.at, d) <= now {
			break
		}
	}
	return m
}

// rates are how many calls asked for leave in the last second, and how long those took
// that ended in it.
func (t *traffic) rates(now int64, c *counts) (qps, rt reading) {
	before := t.ago(now, lately)
	if t.n == 0 || now <= before.at {
		return reading{}, reading{}
	}
	qps = known(float64(max(c.asked()-before.asked(), 0)) / time.Duration(now-before.at).Seconds())
	return qps, c.successes.plus(c.failures).since(before.successes.plus(before.failures)).mean()
}

// budget is how many calls may be admitted until the next tick, if so many may be in a
// second.
func (t *traffic) budget(now int64, c *counts, perSecond float64) int64 {
	before := t.ago(now, lately-tickSystem)
	if t.n == 0 {
		before.counts = *c
	}
	return max(int64(perSecond)-(c.entered-before.entered), 0)
}

// capacity is how many calls can be worked on at once, by Little's law: the most that
// succeeded in a second × the shortest time that they took. That is the bandwidth-delay
// product of BBR (Cardwell et al.: "BBR: Congestion-Based Congestion Control", 2016).
// The times are means of half a second: a single call that was answered from a cache
// says nothing about the others.
func (t *traffic) capacity(now int64) reading {
	var most, shortest float64
	for _, s := range t.slices {
		if s.until == 0 || now > clock.After(s.until, time.Duration(len(t.slices))*sliceLength) {
			continue
		}
		most = max(most, s.perSecond)
		if shortest == 0 || s.took < shortest {
			shortest = s.took
		}
	}
	return reading{most * shortest, most > 0}
}
