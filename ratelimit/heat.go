package ratelimit

import (
	"sync/atomic"
	"time"
)

// heat is how warm something is that calls warm up: from 0, when nobody has called for
// long, to period. While it is in demand it gets a nanosecond warmer with each
// nanosecond, and else as much colder.
//
// It is in demand while tokens are asked for as fast as it gives them when it is cold,
// or faster. Each token that is asked for stands for the time that it takes then, cold.
// These times are laid end to end, up to until; it is in demand up to there. They
// neither begin more than slack ago nor end more than slack ahead, so that a change is
// found out soon. A call that has to be refused, or to wait, shows that it is in
// demand, whatever was before.
//
//	period ┤       ╭─────╮
//	       │     ╱         ╲
//	       │   ╱             ╲
//	     0 ┼─╱─────────────────╲───▶ time
//	        foot  until         foot
//
// So the heat is a line that turns when demand begins and ends. Nothing has to be done
// while it goes on, and no clock has to tick.
type heat struct {
	period int64 // how long it takes to get warm, and to get cold
	cold   int64 // what one token stands for
	slack  int64
	// line is a line that rises, foot<<1 | 1, or falls, foot<<1; foot is where it is 0
	// or would be. It is turned by CompareAndSwap: down, before until is moved on from
	// where demand ended; up, after until has been moved to where it is.
	line  atomic.Int64
	until atomic.Int64
}

// init sets what does not change. It is cold.
func (w *heat) init(period, cold int64) {
	w.period, w.cold = period, cold
	w.slack = max(2*cold, min(int64(time.Second), period/20))
}

// begin lets it have a share of all the heat there can be at now, when nobody asks.
func (w *heat) begin(share float64, now int64) {
	w.line.Store((now + int64(share*float64(w.period))) << 1)
	w.until.Store(now)
}

// share is the heat at now as a share of all there can be. What need not get warm is.
func (w *heat) share(now int64) float64 {
	if w.period == 0 {
		return 1
	}
	return float64(w.at(now)) / float64(w.period)
}

// at returns the heat at now.
func (w *heat) at(now int64) int64 { return w.on(w.line.Load(), w.until.Load(), now) }

// on is the heat at now on a line that rises, if it does, up to until.
func (w *heat) on(line, until, now int64) int64 {
	foot := line >> 1
	switch {
	case line&1 == 0:
		return min(max(0, foot-now), w.period)
	case now <= until:
		return min(max(0, now-foot), w.period)
	}
	return max(0, w.on(line, until, until)-(now-until))
}

// ask is for each call that asks for n tokens. refused says that it was refused, or has
// to wait.
func (w *heat) ask(n int64, refused bool, now int64) {
	call := saturated(n, w.cold)
	for {
		line, until := w.line.Load(), w.until.Load()
		if line&1 == 1 && now > until { // it has been falling since until
			w.line.CompareAndSwap(line, (until+w.on(line, until, until))<<1)
			continue
		}
		from := max(until, now-w.slack)
		if refused {
			from = max(until, now)
		}
		to := min(from+call, now+max(w.slack, call))
		if line&1 == 1 && until-now > w.slack/2 {
			return // it rises for long enough, and need not be written by every call
		}
		if to > until && !w.until.CompareAndSwap(until, to) {
			continue
		}
		if line&1 == 0 && to >= now {
			w.line.CompareAndSwap(line, (now-w.on(line, until, now))<<1|1)
		}
		return
	}
}

// forget takes back what ask did for a call that was not refused, and was not made
// after all.
func (w *heat) forget(n int64) { w.until.Add(-saturated(n, w.cold)) }

// saturated returns x × y, at most maxFill. Neither is negative.
func saturated(x, y int64) int64 {
	if y > 0 && x > int64(maxFill)/y {
		return int64(maxFill)
	}
	return x * y
}
