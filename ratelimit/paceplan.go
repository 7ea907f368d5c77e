package ratelimit

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/stripe"
)

// A pacePlan is the configuration of a Pacer in force, and its slots. It is the origin of
// its decisions, and their judge. Of those, lack is how many units the slot is away:
// more than 0 if they refuse, and else how long it has been there, as a negative number.
// mark is where the next slot begins, or untaken; of a refusal, where at stood.
type pacePlan struct {
	origin
	scale
	slack  int64 // units
	config PacerConfig
	most   int64 // the capacity, or 0 if the slots play no part because the rate is none
	// begins is when the next slot begins, for the plan after one whose rate is none.
	begins int64

	// What is above is only read; a line that nobody writes keeps it apart.
	_ [2 * stripe.Line]byte
	// next is the position on the scale where the next slot begins, or frozen. It is
	// changed by CompareAndSwap; swap freezes it, and nobody touches it again. A caller
	// finds out whether he wants the slot before he takes it, so nobody ever sees a
	// queue that is none.
	next atomic.Int64
	_    [stripe.Line]byte
}

// newPacePlan returns the plan of the pacer of that name, as of a new pacer that begins
// now. c is valid.
func newPacePlan(name string, c PacerConfig, now int64) *pacePlan {
	p := &pacePlan{config: c}
	p.origin = origin{judge: p, resource: name, policy: "pacer", limit: c.Rate, reason: ReasonLimited}
	switch {
	case c.Rate.IsUnlimited():
		p.judge, p.capacity = boundless{}, math.MaxInt64
	case !c.Rate.IsBlocked():
		p.scale = newScale(c.Rate.perNano(), now)
		p.slack = c.Slack * p.unit
		p.most = max(1, c.Rate.within(maxFill))
		p.capacity = p.most
		p.next.Store(-p.slack)
	}
	return p
}

// take takes a slot for n tokens that comes by latest, at the time at. ok is false if
// the plan is not the current one any more.
func (p *pacePlan) take(n, latest, now int64) (d Decision, at int64, ok bool) {
	if uint64(n-1) >= uint64(p.most) {
		d, ok := p.peek(n, now)
		return d, now, ok
	}
	if p.ended(now) {
		return d, 0, false
	}
	v, cost := p.at(now), n*p.unit
	last := max(v, p.at(latest)) // a slot that is there can be had by who is late, too
	for {
		next := p.next.Load()
		slot := max(next, v-p.slack)
		if slot > last {
			return Decision{&p.origin, n, slot - v, v}, 0, next != frozen
		}
		if p.next.CompareAndSwap(next, slot+cost) {
			d = Decision{&p.origin, n, min(0, slot-v), slot + cost}
			return d, max(now, p.epoch+int64(p.span(slot))), true
		}
	}
}

// peek decides about any n and takes nothing.
func (p *pacePlan) peek(n, now int64) (d Decision, ok bool) {
	d = Decision{by: &p.origin, n: n}
	if n < 0 || p.most == 0 || n > p.most {
		if n < 0 || n > p.capacity {
			d.lack = 1
		}
		return d, true
	}
	v, next := p.at(now), p.next.Load()
	d.lack, d.mark = max(next, v-p.slack)-v, v
	if d.lack <= 0 {
		d.mark = untaken
	}
	return d, next != frozen && !p.ended(now)
}

// giveBack gives back a slot of n tokens, if the next one begins at mark still, where it
// ended.
func (p *pacePlan) giveBack(n, mark int64) {
	p.next.CompareAndSwap(mark, mark-n*p.unit)
}

// after is how many units there are after d until the next slot; less than 0 if it is
// there.
func (p *pacePlan) after(d Decision) int64 {
	if d.lack <= 0 && d.mark != untaken {
		return d.lack + d.n*p.unit
	}
	return d.lack
}

func (p *pacePlan) remaining(d Decision) int64 {
	if p.most == 0 || d.n > p.most {
		return 0
	}
	if after := p.after(d); after <= 0 {
		return 1 - after/p.unit
	}
	return 0
}

func (p *pacePlan) retryAfter(d Decision) time.Duration {
	return p.between(d.mark, d.mark+d.lack)
}

func (p *pacePlan) resetAfter(d Decision) time.Duration {
	if p.most == 0 || d.n > p.most {
		return 0
	}
	missing := p.slack + p.after(d)
	if d.OK() {
		return p.span(missing)
	}
	return p.between(d.mark, d.mark+missing)
}

// handOver ends p and begins next with what p has. When the next slot begins is kept,
// since others may have been promised those before it; slack that is there is kept as so
// many tokens.
func (p *pacePlan) handOver(next *pacePlan, now int64) {
	next.begins = p.begins
	slack := int64(0)
	if p.most > 0 {
		slot, v := p.next.Swap(frozen), p.at(now)
		next.begins = p.epoch + int64(p.span(slot))
		slack = min(0, max(slot, v-p.slack)-v)
	}
	switch {
	case next.most == 0:
	case next.begins > now:
		next.next.Store(next.at(next.begins))
	case p.most > 0:
		next.next.Store(max(rescale(slack, p.unit, next.unit), -next.slack))
	}
}
