package ratelimit

import (
	"math"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// A warmPlan is the configuration of a WarmUp in force, with its bucket and its heat.
// It is the origin of its decisions, and their judge. Of those that refuse, lack is how
// many units are missing and mark where at stood, as of a claim. Of those that admit,
// mark is that of a take, and lack packs how many units there were before and the step
// of the tariff that was paid.
type warmPlan struct {
	origin
	own    bucket
	heat   heat
	config WarmUpConfig
	most   int64 // the capacity, or 0 if the bucket plays no part because the rate is none
	// tariff is what a token costs, from warm to cold.
	tariff []fare
}

// A fare is a step of a tariff. A ticket that has it knows what was paid.
type fare struct {
	plan  *warmPlan
	step  int64
	units int64 // for a token
}

const (
	stepBits = 7
	steps    = 1 << stepBits
	// maxWarmFill is how long a bucket may take to fill, so that a level and a step fit
	// into a decision.
	maxWarmFill = day
)

// newWarmPlan returns the plan of the limiter of that name, as of a new limiter that
// begins now. c is valid.
func newWarmPlan(name string, c WarmUpConfig, now int64) *warmPlan {
	p := &warmPlan{config: c}
	p.origin = origin{judge: p, resource: name, policy: "warm_up", limit: c.Rate, reason: ReasonLimited}
	switch {
	case c.Rate.IsUnlimited():
		p.judge, p.capacity = boundless{}, math.MaxInt64
		return p
	case c.Rate.IsBlocked():
		return p
	}
	p.own.scale = newScale(c.Rate.perNano(), now)
	p.most, p.capacity = c.burst(), c.burst()
	p.own.burst = p.most * p.own.unit
	p.own.used.Store(-p.own.burst)
	p.tariff = make([]fare, steps)
	for i := range p.tariff {
		p.tariff[i] = fare{p, int64(i), int64(math.Ceil(float64(p.own.unit) * c.price(i)))}
	}
	p.heat.init(int64(c.Period), int64(math.Ceil(c.ColdFactor*float64(c.Rate.Per)/float64(c.Rate.Tokens))))
	p.heat.begin(0, now)
	return p
}

// price is what a token costs on step i, in tokens. Where y is 0 warm and 1 cold, and
// y² is how much of the heat is missing, the curve of WarmUp is √(1 + (f² − 1) y²). With
// as many steps, even in y, the price is never wrong by more than 0.6 % for a ColdFactor
// f of 3, and 2 % for 10.
func (c WarmUpConfig) price(i int) float64 {
	y := float64(i) / (steps - 1)
	return math.Sqrt(1 + (c.ColdFactor*c.ColdFactor-1)*y*y)
}

// fare is the one at now.
func (p *warmPlan) fare(now int64) *fare {
	missing := p.heat.period - p.heat.at(now)
	if missing <= 0 {
		return &p.tariff[0]
	}
	y := math.Sqrt(float64(missing) / float64(p.heat.period))
	return &p.tariff[int(y*(steps-1)+0.5)]
}

// take decides about n tokens with ahead more, and takes n if they are there. ok is
// false if the bucket is not the current one any more.
func (p *warmPlan) take(n, ahead, now int64) (d Decision, ok bool) {
	if uint64(n-1) >= uint64(p.most) {
		return p.peek(n, ahead, now)
	}
	f := p.fare(now)
	lack, mark, ok := p.own.pay(n*p.own.unit+p.behind(ahead), n*f.units, now)
	if ok {
		p.heat.ask(n, lack > 0, now)
	}
	if lack <= 0 {
		lack = -f.pack(n*p.own.unit - lack)
	}
	return Decision{&p.origin, n, lack, mark}, ok
}

// peek decides about any n and takes nothing.
func (p *warmPlan) peek(n, ahead, now int64) (d Decision, ok bool) {
	d = Decision{by: &p.origin, n: n}
	if n < 0 || p.most == 0 {
		if n < 0 || n > p.capacity {
			d.lack = 1
		}
		return d, true
	}
	level, ok := p.own.level(now)
	level -= p.behind(ahead)
	d.mark = p.own.at(now)
	if d.lack = min(n, p.most+1)*p.own.unit - level; d.lack <= 0 {
		d.lack, d.mark = -p.tariff[0].pack(level), untaken
	}
	return d, ok
}

// behind is what the tokens of those in line are in units. They may be of a time before
// an Update, when many more could be asked for.
func (p *warmPlan) behind(ahead int64) int64 {
	if ahead == 0 {
		return 0
	}
	return min(ahead, maxLevel/p.own.unit) * p.own.unit
}

// pay takes cost units if need are there, which may be fewer. lack is how many of those
// are missing, at most 0 if it took them. ok is false if the bucket was handed over, or
// its scale has ended.
func (b *bucket) pay(need, cost, now int64) (lack, mark int64, ok bool) {
	if b.ended(now) {
		return 0, 0, false
	}
	v := b.at(now)
	for {
		returned := b.returned.Load()
		used := b.used.Load()
		from := max(used, v-b.burst)
		if lack = from + need - v; lack > 0 {
			return lack, v, used != frozen
		}
		if b.used.CompareAndSwap(used, from+cost) {
			return lack, from + cost + returned, true
		}
	}
}

// pack packs how many units there were before the fare was paid, and which it was.
func (f *fare) pack(level int64) int64 { return level<<stepBits | f.step }

// decision is that which took a token at this fare, as far as that is needed to give it
// back.
func (f *fare) decision(mark int64) Decision {
	return Decision{&f.plan.origin, 1, -f.pack(0), mark}
}

// paid is the fare that d, which admits, has paid or would.
func (p *warmPlan) paid(d Decision) *fare { return &p.tariff[-d.lack&(steps-1)] }

func (p *warmPlan) giveBack(d Decision) {
	if p.most == 0 {
		return
	}
	p.heat.forget(d.n)
	p.own.giveBack(d.n*p.paid(d).units, d.mark, clock.Now)
}

// left is how many units were there after d.
func (p *warmPlan) left(d Decision) int64 {
	switch {
	case d.lack > 0:
		return min(d.n, p.most+1)*p.own.unit - d.lack
	case d.mark == untaken:
		return -d.lack >> stepBits
	}
	return -d.lack>>stepBits - d.n*p.paid(d).units
}

func (p *warmPlan) remaining(d Decision) int64 {
	if p.most == 0 {
		return 0
	}
	return max(0, p.left(d)/p.own.unit)
}

func (p *warmPlan) retryAfter(d Decision) time.Duration {
	return p.own.between(d.mark, d.mark+d.lack)
}

func (p *warmPlan) resetAfter(d Decision) time.Duration {
	if p.most == 0 {
		return 0
	}
	missing := p.own.burst - p.left(d)
	if d.OK() {
		return p.own.span(missing)
	}
	return p.own.between(d.mark, d.mark+missing)
}
