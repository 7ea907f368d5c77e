package ratelimit

// plan is a configuration in force, and the bucket that goes with it. Nothing in it
// changes but the bucket's state; Update puts another one in its place.
type plan struct {
	claim
	own    bucket
	config Config
}

// newPlan returns the plan of the limiter of that name, with a bucket as of a new
// limiter that begins now. c is valid.
func newPlan(name string, c Config, now int64) *plan {
	p := &plan{config: c}
	if !c.Rate.IsUnlimited() && !c.Rate.IsBlocked() {
		p.own.scale = newScale(c.Rate.perNano(), now)
		p.own.burst = c.burst() * p.own.unit
		p.own.used.Store(-c.initial() * p.own.unit)
	}
	p.claim.init(name, "token_bucket", c.Rate, &p.own, 0)
	return p
}

// handOver ends p, and begins next with what p has. Those in q take their tokens
// again, in the same order.
func (p *plan) handOver(next *plan, how Level, q *queue, now int64) {
	switch {
	case p.limit.IsUnlimited():
		next.own.used.Store(-next.own.burst)
	case p.limit.IsBlocked():
		next.own.used.Store(0)
	case how == ResetLevel || next.most == 0:
		p.own.end()
	default:
		used := p.own.handOver(&next.own, how, q.cost(), now)
		q.restart(&next.own)
		p.own.inherit(&next.own, used)
		return
	}
	q.restart(&next.own)
}
