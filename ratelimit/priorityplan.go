package ratelimit

// priorityPlan is a configuration of a Priorities in force, and the buckets that go
// with it. Nothing in it changes but their state; Update puts another one in its
// place.
type priorityPlan struct {
	config PrioritiesConfig
	// buckets are the classes' own and, last, the shared one. One without a rate is
	// not in use.
	buckets [classes + 1]bucket
	// plenty is what every class may take without saying which it is: what is in the
	// shared bucket above all floors. Its most is 0 if there is no such thing.
	plenty claim
	ways   [classes][]claim // at least one for each class
}

// newPriorityPlan returns the plan of the limiter of that name, whose buckets are
// full at now. c is valid.
func newPriorityPlan(name string, c PrioritiesConfig, now int64) *priorityPlan {
	const policy = "priorities"
	p := &priorityPlan{config: c}
	if c.Rate.IsUnlimited() || c.Rate.IsBlocked() {
		for i := range p.ways {
			p.ways[i] = make([]claim, 1)
			p.ways[i][0].init(name, policy, c.Rate, nil, 0)
		}
		return p
	}
	for i, s := range c.split() {
		if b := &p.buckets[i]; s.rate.Sign() > 0 {
			b.scale = newScale(s.rate, now)
			b.burst = s.burst * b.unit
			b.used.Store(-b.burst)
		}
	}
	shared := &p.buckets[classes]
	if shared.inUse() {
		p.plenty.init(name, policy, c.Rate, shared, shared.share(c.Classes[classes-1].Floor))
	}
	for i := range p.ways {
		// The place of each is fixed once its address is taken, so there is room for all.
		ways := make([]claim, 0, classes+1)
		add := func(b *bucket, floor int64) {
			ways = append(ways, claim{})
			ways[len(ways)-1].init(name, policy, c.Rate, b, floor)
		}
		if own := &p.buckets[i]; own.inUse() {
			add(own, 0)
		}
		if shared.inUse() {
			add(shared, shared.share(c.Classes[i].Floor))
		}
		for j := classes - 1; j >= 0; j-- { // the least important lends first
			lender := &p.buckets[j]
			if j == i || !lender.inUse() {
				continue
			}
			if keep := lender.share(c.Keep); keep >= lender.unit {
				add(lender, keep)
			}
		}
		if len(ways) == 0 { // all is assured to others, and nobody lends
			ways = make([]claim, 1)
			ways[0].init(name, policy, Blocked(), nil, 0)
		}
		p.ways[i] = ways
	}
	return p
}

// inUse reports whether the bucket has a rate.
func (b *bucket) inUse() bool { return b.mul > 0 }

// share is a share of what the bucket holds, but leaves room for a token above it.
func (b *bucket) share(of float64) int64 {
	return min(rescale(b.burst, million, millionths(of)), b.burst-b.unit)
}

// decide goes the ways of a class until one has n tokens, and takes them if it is to:
// its own bucket, what is shared, what others lend. The refusal is that of the way on
// which n tokens come first.
func (p *priorityPlan) decide(class int, n, now int64, take bool) (best Decision, ok bool) {
	ways := p.ways[class]
	for i := range ways {
		var d Decision
		if c := &ways[i]; take {
			d, ok = c.take(n, now)
		} else {
			d, ok = c.peek(n, now)
		}
		if !ok || d.OK() {
			return d, ok
		}
		if i == 0 || d.before(best) {
			best = d
		}
	}
	return best, true
}

// before reports whether asking again after d helps sooner than after e; both are
// refusals.
func (d Decision) before(e Decision) bool {
	if d.Never() || e.Never() {
		return !d.Never() || d.Capacity() > e.Capacity()
	}
	return d.RetryAfter() < e.RetryAfter()
}
