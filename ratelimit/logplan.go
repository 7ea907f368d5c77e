package ratelimit

import (
	"math"
	"time"
)

const (
	// maxLog is the largest limit of a SlidingLog, and maxLogPer its longest window.
	// Both are such that what a decision tells fits into it.
	maxLog    = 1_000
	maxLogPer = 31 * day
)

// A logPlan is the configuration of a SlidingLog in force. It is the origin of its
// decisions, and their judge.
//
//	                       lack                    mark
//	tokens taken           −packLog(reset, left)   the time
//	tokens looked for      −packLog(reset, left)   −1
//	refused                how long to wait        packLog(reset, left)
//	refused, and counted   how long to wait        the time; nothing is left, for a whole window
type logPlan struct {
	origin
	config SlidingLogConfig
	width  int64 // of a window, in nanoseconds
	limit  int64 // 0 if the stamps play no part because the rate is none
}

// newLogPlan returns the plan of c, which is valid.
func newLogPlan(name string, c SlidingLogConfig) *logPlan {
	p := &logPlan{config: c}
	p.origin = origin{judge: p, resource: name, policy: "sliding_log", limit: c.Limit, reason: ReasonLimited}
	switch {
	case c.Limit.IsUnlimited():
		p.judge, p.capacity = boundless{}, math.MaxInt64
	case !c.Limit.IsBlocked():
		p.limit, p.capacity, p.width = c.Limit.Tokens, c.Limit.Tokens, int64(c.Limit.Per)
	}
	return p
}

// can reports whether the log can ever give n tokens, and n is one at least.
func (p *logPlan) can(n int64) bool { return uint64(n-1) < uint64(p.limit) }

// penalises reports whether the refusal of n tokens counts.
func (p *logPlan) penalises(n int64) bool { return p.config.CountRejected && p.can(n) }

// memory is how many tokens the log has to remember. If refusals count, as many of them
// as were taken must not have been forgotten when all of these are given back.
func (p *logPlan) memory() int64 {
	if p.config.CountRejected {
		return 2 * p.limit
	}
	return p.limit
}

// look decides about any n with ahead more, and takes nothing. What it says is of that
// turn of the stamps; if there is another by the end, it is worth nothing.
func (p *logPlan) look(l *stamps, ahead, n, now int64) (d Decision, turn uint64) {
	d, turn = Decision{by: &p.origin, n: n}, l.turn.Load()
	if n < 0 || p.limit == 0 {
		if n < 0 || n > p.capacity {
			d.lack = 1
		}
		return d, turn
	}
	end, newest := l.end.Load(), l.newest()
	now = max(now, l.latest.Load())
	left := p.limit - ahead - (end - l.after(end-p.limit, now-p.width))
	packed := packLog(max(0, newest+p.width-now), left)
	switch gone := end - p.limit + ahead; {
	case n <= left:
		d.lack, d.mark = -packed, -1
	case n > p.limit: // never
		d.lack, d.mark = 1, packed
	case p.penalises(n):
		d.lack, d.mark = p.untilGone(l, gone+n+n, now), now
	default:
		d.lack, d.mark = p.untilGone(l, gone+n, now), packed
	}
	return d, turn
}

// untilGone is how long it takes until all tokens up to number k count no more, of
// which those that are not there are taken now.
func (p *logPlan) untilGone(l *stamps, k, now int64) int64 {
	if k > l.end.Load() {
		return p.width
	}
	return l.at(k-1) + p.width - now
}

// packLog packs in what time all is back, and what is left.
func packLog(reset, left int64) int64 { return reset<<leftBits | max(0, left) }

const leftBits = 10

// packed is what d packs; 0 left, after a whole window, if it does not.
func (p *logPlan) packed(d Decision) int64 {
	switch {
	case d.lack <= 0:
		return -d.lack
	case p.penalises(d.n):
		return packLog(p.width, 0)
	}
	return d.mark
}

func (p *logPlan) remaining(d Decision) int64 { return p.packed(d) & (1<<leftBits - 1) }

func (p *logPlan) retryAfter(d Decision) time.Duration { return time.Duration(d.lack) }

func (p *logPlan) resetAfter(d Decision) time.Duration { return time.Duration(p.packed(d) >> leftBits) }
