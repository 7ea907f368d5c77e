package ratelimit

import (
	"math"
	"math/bits"
	"time"
)

// terms is a SharedConfig in force for a number of nodes, and all that follows from
// both. It is the judge of the decisions about tokens that the store gave or refused:
// if they were given, lack is minus what was left; else lack is how long it will take,
// in nanoseconds, and mark is what was left. Nothing in it changes.
type terms struct {
	config SharedConfig
	nodes  int64
	asks   bool  // whether a store has a say; if not, all is up to the mirror
	quota  Quota // that the store keeps

	bought origin // of decisions about tokens of the store
	open   origin // of tokens that nobody gave, with FailOpen
	shut   origin // of refusals because the store does not answer

	local Config        // of the node's own limiter
	most  int64         // tokens of a lease at most
	ttl   time.Duration // after which an unused lease goes back
}

// newTerms returns the terms of the limiter of that name. c is valid.
func newTerms(name string, c SharedConfig, nodes int64) *terms {
	t := &terms{config: c, nodes: nodes, ttl: 2 * c.SyncEvery}
	t.asks = c.limits() && c.Threshold.Kind != PerNodeThreshold
	if t.asks {
		t.quota = Quota{c.Threshold.Rate, c.burst()}
		if c.Threshold.Kind == ClusterAverageThreshold {
			t.quota = t.quota.times(nodes)
		}
	}
	t.bought = origin{judge: t, resource: name, policy: "shared", limit: t.quota.Rate, capacity: t.quota.Burst, reason: ReasonLimited}
	t.open, t.shut = t.bought, t.bought
	t.shut.reason = ReasonStore
	t.local = t.localConfig()
	switch {
	case c.Strict || !t.asks:
	case c.MaxLease == Auto:
		t.most = max(1, min(t.quota.Burst/(4*nodes), t.quota.Rate.share(nodes).within(c.SyncEvery)))
	default:
		t.most = c.MaxLease
	}
	return t
}

// localConfig is that of the node's own limiter: a share of the shared limit, except
// that LocalRate may say how fast it is.
func (t *terms) localConfig() Config {
	c := DefaultConfig()
	c.Rate, c.Burst, c.MaxWait, c.MaxWaiters = t.config.Threshold.Rate, t.config.Burst, t.config.MaxWait, t.config.MaxWaiters
	if !t.asks {
		return c
	}
	c.MaxDebt = 0
	if t.config.Threshold.Kind == GlobalThreshold {
		c.Rate = c.Rate.share(t.nodes)
	}
	if t.config.LocalRate != (Rate{}) {
		c.Rate = t.config.LocalRate
	}
	c.Burst = max(1, min(t.quota.Burst/t.nodes, c.Rate.within(maxFill)))
	return c
}

// can reports whether n tokens can ever be admitted, and n is one at least.
func (t *terms) can(n int64) bool { return uint64(n-1) < uint64(t.bought.capacity) }

// plain decides about an n for which can is false, when so many tokens are left.
func (t *terms) plain(n, left int64) Decision {
	if n == 0 {
		return Decision{by: &t.bought, lack: -left}
	}
	return Decision{&t.bought, n, 1, left}
}

func (t *terms) remaining(d Decision) int64 {
	if d.OK() {
		return min(-d.lack, t.bought.capacity)
	}
	return min(d.mark, t.bought.capacity)
}

func (t *terms) retryAfter(d Decision) time.Duration { return time.Duration(d.lack) }

func (t *terms) resetAfter(d Decision) time.Duration {
	return t.lasts(t.bought.capacity - t.remaining(d))
}

// lasts is how long it takes until so many tokens have come, at most.
func (t *terms) lasts(tokens int64) time.Duration {
	r := t.quota.Rate
	if tokens <= 0 || r.Tokens == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(tokens), uint64(r.Per))
	if hi >= uint64(r.Tokens) {
		return math.MaxInt64
	}
	q, rest := bits.Div64(hi, lo, uint64(r.Tokens))
	if rest > 0 {
		q++
	}
	return time.Duration(min(q, math.MaxInt64))
}

// gap is how long a node that got less than it wanted leaves the store alone, so that
// there is a lease for each node when they come again: as long as that takes to come,
// but not so long that the bucket runs over meanwhile.
func (t *terms) gap() time.Duration {
	if t.most == 0 {
		return 0
	}
	return min(t.lasts(product64(t.nodes, t.most)), t.lasts(t.quota.Burst)/2, t.config.SyncEvery)
}

// enough is as many refusals as need be counted to see that a whole lease is wanted.
func (t *terms) enough() int64 { return product64(4, t.most) }

// share is the n-th part of r, but no less than one token in the longest Per there is.
func (r Rate) share(n int64) Rate {
	switch {
	case r.IsUnlimited() || r.IsBlocked():
		return r
	case int64(r.Per) <= int64(maxPer)/n:
		return Rate{r.Tokens, r.Per * time.Duration(n)}
	case r.Tokens >= n:
		return Rate{r.Tokens / n, r.Per}
	}
	return Rate{1, maxPer}
}

// times is a quota n times as large.
func (q Quota) times(n int64) Quota {
	return Quota{Rate{product64(q.Rate.Tokens, n), q.Rate.Per}, product64(q.Burst, n)}
}

// product64 returns x × y, or the most there is. Both are at least 0.
func product64(x, y int64) int64 {
	if hi, lo := bits.Mul64(uint64(x), uint64(y)); hi == 0 && lo <= math.MaxInt64 {
		return int64(lo)
	}
	return math.MaxInt64
}
