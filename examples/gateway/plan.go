package main

import (
	"fmt"
	"time"
)

// What the incident is made of. None of it scales with -duration.
const (
	answerTime = 100 * time.Millisecond // of a healthy backend, give or take answerJitter
	hangTime   = 10 * time.Second       // of a sick one
	patience   = time.Second            // how long a request waits for a slot at the front door

	attemptTimeout = time.Second
	slowLimit      = 500 * time.Millisecond

	userRate  = 40 // requests a second
	orderRate = 60
)

// At fullLength the numbers are the round ones: 200 slots, a window of 5 s, open
// for 2 s.
const (
	fullLength = 40 * time.Second
	fullSlots  = 200
	shortest   = 10 * time.Second
	longest    = 24 * time.Hour
)

// spare is what a phase gets beyond what it needs, for a busy machine.
const spare = 500 * time.Millisecond

// A phase is a part of an act.
type phase int32

const (
	healthy phase = iota
	incident
	recovered
)

func (p phase) String() string {
	return [...]string{healthy: "healthy", incident: "order-service hangs", recovered: "order-service is back"}[p]
}

// A plan is both acts in numbers.
type plan struct {
	slots int // of the front door

	window     time.Duration // of the breakers
	openFor    time.Duration
	openAtMost time.Duration // the open period doubles while recovery fails, up to this
	jitter     float64       // and is spread by ± this share
	probes     []int         // stages of half-open

	healthy  time.Duration
	incident time.Duration
	after    time.Duration // the last phase of the act without protection
	recovery time.Duration // the last phase of the act with it
}

// newPlan divides total among the two acts.
//
// The last phase comes first. With protection it must outlast the longest way
// back to CLOSED, which at 40 s is
//
//	1.0 s  a probe sent just before the recovery hangs until the attempt timeout
//	4.4 s  which opens the breaker again, for openAtMost and 10 % of jitter
//	0.8 s  then 1, 5 and 20 probes pass: 26 of 60 requests a second, and each of
//	       the three stages ends with the last answer, 120 ms after it was asked for
//	0.5 s  spare
//
// Without protection nothing recovers but the backend, and 1.5 s at the shortest
// are enough for the last request of the incident to run out of patience. What is
// left goes to the healthy phase and the incident, the same in both acts.
//
// The slots scale, too, so that orders fill them in the first half of the incident.
// There are never more than 200, for orders that hang 10 s at 60 a second hold
// 600 at most: with a slot for each, no incident would be long enough.
func newPlan(total time.Duration) (plan, error) {
	if total < shortest || total > longest {
		return plan{}, fmt.Errorf("-duration %v is not in [%v, %v]", total, shortest, longest)
	}
	scale := float64(total) / float64(fullLength)
	scaled := func(d time.Duration) time.Duration {
		return time.Duration(scale * float64(d)).Truncate(10 * time.Millisecond)
	}
	p := plan{
		slots:      int(min(scale, 1) * fullSlots),
		window:     scaled(5 * time.Second),
		openFor:    scaled(2 * time.Second),
		openAtMost: scaled(4 * time.Second),
		jitter:     0.1,
		probes:     []int{1, 5, 20},
	}
	p.recovery = attemptTimeout + p.longestOpen() + p.probing() + spare
	p.after = scaled(6 * time.Second)
	rest := (total - p.recovery - p.after) / 2
	p.healthy = (rest * 3 / 10).Truncate(10 * time.Millisecond)
	p.incident = (rest * 7 / 10).Truncate(10 * time.Millisecond)
	p.recovery = total - p.after - 2*(p.healthy+p.incident) // with what was truncated
	return p, nil
}

// longestOpen is the longest open period there can be.
func (p plan) longestOpen() time.Duration {
	return time.Duration(float64(p.openAtMost) * (1 + p.jitter))
}

// probing is how long the stages of half-open take when all goes well.
func (p plan) probing() time.Duration {
	var d time.Duration
	for _, n := range p.probes {
		d += time.Duration(n)*time.Second/orderRate + answerTime + answerJitter
	}
	return d
}

// last is how long the last phase is.
func (p plan) last(protected bool) time.Duration {
	if protected {
		return p.recovery
	}
	return p.after
}

// length is how long an act is.
func (p plan) length(protected bool) time.Duration {
	return p.healthy + p.incident + p.last(protected)
}
