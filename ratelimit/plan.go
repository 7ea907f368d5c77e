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

// handOver ends p, and begins next with what p has.
func (p *plan) handOver(next *plan, how Level, now int64) {
	switch {
	case p.config.Rate.IsUnlimited():
		next.own.used.Store(-next.own.burst)
	case p.config.Rate.IsBlocked():
		next.own.used.Store(0)
	case how == ResetLevel || next.most == 0:
		p.own.end()
	default:
		p.own.handOver(&next.own, how, now)
	}
}
