package ratelimit

import (
	"math"
	"time"
)

// A claim is somebody's right to take from a bucket down to a floor. It is the
// origin of the decisions about that, and their judge: lack is what take says, and
// mark is the take's mark, or of a refusal where at stood.
type claim struct {
	origin
	bucket *bucket
	floor  int64 // units that stay in the bucket
	// most is the capacity, or 0 if the bucket plays no part because the rate is none.
	most int64
}

func (c *claim) init(name, policy string, limit Rate, b *bucket, floor int64) {
	c.origin = origin{judge: c, resource: name, policy: policy, limit: limit, reason: ReasonLimited}
	switch {
	case limit.IsUnlimited():
		c.judge, c.capacity = boundless{}, math.MaxInt64
	case !limit.IsBlocked():
		c.bucket, c.floor = b, floor
		c.most = (b.burst - floor) / b.unit
		c.capacity = c.most
	}
}

// take decides about n tokens and takes them if they are there. ok is false if the
// bucket is not the current one any more.
func (c *claim) take(n, now int64) (d Decision, ok bool) {
	if !c.can(n) {
		return c.peek(n, now)
	}
	lack, mark, ok := c.bucket.take(n, c.floor, now)
	return Decision{&c.origin, n, lack, mark}, ok
}

// can reports whether the bucket can ever give n tokens, and n is one at least.
func (c *claim) can(n int64) bool { return uint64(n-1) < uint64(c.most) }

// peek decides about any n and takes nothing.
func (c *claim) peek(n, now int64) (d Decision, ok bool) {
	d = Decision{by: &c.origin, n: n}
	if n < 0 || c.most == 0 {
		if n < 0 || n > c.capacity {
			d.lack = 1
		}
		return d, true
	}
	level, v, ok := c.bucket.look(now)
	level -= c.floor
	d.mark = v
	if n > c.most {
		d.lack = c.brim() - level
	} else if d.lack = n*c.bucket.unit - level; d.lack <= 0 {
		d.lack, d.mark = -level, untaken
	}
	return d, ok
}

// untaken is the mark of a take that has not happened. It is so far behind that
// nothing of it can be given back.
const untaken = -frozen

// brim is one unit more than the bucket can give: what is never there.
func (c *claim) brim() int64 { return c.bucket.burst - c.floor + 1 }

// left is how many units above the floor were there after d.
func (c *claim) left(d Decision) int64 {
	switch {
	case d.lack <= 0:
		return -d.lack
	case d.n > c.most:
		return c.brim() - d.lack
	}
	return d.n*c.bucket.unit - d.lack
}

func (c *claim) remaining(d Decision) int64 {
	if c.most == 0 {
		return 0
	}
	return max(0, c.left(d)/c.bucket.unit)
}

func (c *claim) retryAfter(d Decision) time.Duration {
	return c.bucket.between(d.mark, d.mark+d.lack)
}

func (c *claim) resetAfter(d Decision) time.Duration {
	if c.most == 0 {
		return 0
	}
	missing := c.bucket.burst - c.floor - c.left(d)
	if d.OK() {
		return c.bucket.span(missing)
	}
	return c.bucket.between(d.mark, d.mark+missing)
}

// boundless is the judge of a limiter that has no limit.
type boundless struct{}

func (boundless) remaining(Decision) int64          { return math.MaxInt64 }
func (boundless) retryAfter(Decision) time.Duration { return 0 }
func (boundless) resetAfter(Decision) time.Duration { return 0 }
