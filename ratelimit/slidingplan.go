package ratelimit

import (
	"math"
	"time"
)

// A slidingPlan is the configuration of a SlidingWindow in force, and the counts that
// go with it. It is the origin of its decisions, and their judge. Of those, mark is the
// time since the epoch of the counts, or −1 − time if they admit and have taken
// nothing. lack packs what the counts came to: 1 + that if they refuse, and else −that.
type slidingPlan struct {
	origin
	config SlidingWindowConfig
	// counts are shared with the plan before, if the length of the window is the
	// same.
	counts *pairCount
	limit  int64 // 0 if the counts play no part because the rate is none
}

// newSlidingPlan returns the plan that follows old, which is nil for the first. c is
// valid. It seals old's counts if it needs others.
func newSlidingPlan(name string, c SlidingWindowConfig, old *slidingPlan, now int64) *slidingPlan {
	p := &slidingPlan{config: c}
	p.origin = origin{judge: p, resource: name, policy: "sliding_window", limit: c.Limit, reason: ReasonLimited}
	width := int64(c.Limit.Per)
	switch {
	case c.Limit.IsUnlimited():
		p.judge, p.capacity = boundless{}, math.MaxInt64
		width = 0
	case c.Limit.IsBlocked():
		width = 0
	default:
		p.limit, p.capacity = c.Limit.Tokens, c.Limit.Tokens
	}
	switch {
	case old != nil && (width == 0 || width == old.counts.width):
		p.counts = old.counts
	case old != nil:
		p.counts = old.counts.follow(width, now)
	default:
		p.counts = newPairCount(max(width, 1), now)
	}
	return p
}

// take decides about n tokens and counts them if they fit. ok is false if the counts
// are not the current ones any more.
func (p *slidingPlan) take(n, ahead, now int64) (d Decision, ok bool) {
	if uint64(n-1) >= uint64(p.limit) {
		return p.peek(n, ahead, now)
	}
	s, took, ok := p.counts.take(n, ahead, p.limit, now)
	return p.decide(s, n, ahead, took, took), ok
}

// peek decides about any n and counts nothing.
func (p *slidingPlan) peek(n, ahead, now int64) (d Decision, ok bool) {
	if n < 0 || p.limit == 0 {
		d = Decision{by: &p.origin, n: n}
		if n < 0 || n > p.capacity {
			d.lack = 1
		}
		return d, true
	}
	word, _, s := p.counts.see(now)
	fits := n <= p.limit && p.counts.fits(s, n+ahead, p.limit)
	return p.decide(s, n, ahead, fits, false), word != sealed
}

// decide tells of n tokens at the sight of s, which has counted them if it took them.
func (p *slidingPlan) decide(s sight, n, ahead int64, admitted, took bool) Decision {
	if !admitted && p.penalises(n) {
		ahead += n
	}
	counts := s.before<<pairBits | min(s.in+ahead, maxPair)
	switch {
	case !admitted:
		return Decision{&p.origin, n, 1 + counts, s.time}
	case took:
		return Decision{&p.origin, n, -counts, s.time}
	}
	return Decision{&p.origin, n, -counts, -1 - s.time}
}

// penalises reports whether the refusal of n tokens counts.
func (p *slidingPlan) penalises(n int64) bool {
	return p.config.CountRejected && 0 < n && n <= p.limit
}

// sight is what d saw, with what it counted.
func (p *slidingPlan) sight(d Decision) sight {
	counts := -d.lack
	if d.lack > 0 {
		counts = d.lack - 1
	}
	time := max(d.mark, -1-d.mark)
	return sight{time, time / p.counts.width, counts >> pairBits, counts & pairMask}
}

func (p *slidingPlan) remaining(d Decision) int64 {
	if p.limit == 0 {
		return 0
	}
	return max(0, p.limit-p.counts.used(p.sight(d)))
}

func (p *slidingPlan) retryAfter(d Decision) time.Duration {
	return time.Duration(p.counts.untilFit(p.sight(d), d.n, p.limit))
}

func (p *slidingPlan) resetAfter(d Decision) time.Duration {
	if p.limit == 0 {
		return 0
	}
	return time.Duration(p.counts.untilEmpty(p.sight(d)))
}
