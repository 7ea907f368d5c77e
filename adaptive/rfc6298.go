package adaptive

import (
	"math"
	"sync/atomic"
	"time"
)

// rfc6298 is the estimator of RFC6298: RFC 6298, "Computing TCP's Retransmission
// Timer", with its gains of 1/8 and 1/4, and with Karn's rule that a call which
// timed out is no measurement.
type rfc6298 struct {
	initial time.Duration // the limit before the first call has finished
	// smoothed holds the smoothed time and its deviation, two float32 of ns; 0 before
	// the first call. Written by CAS.
	smoothed atomic.Uint64
	backoff  atomic.Int32 // how often the limit was doubled since a call finished
	done     atomic.Int64
}

func (r *rfc6298) Observe(s Sample) {
	switch s.End {
	case Finished:
		r.done.Add(1)
		r.measure(float32(s.Took))
		if r.backoff.Load() != 0 {
			r.backoff.Store(0)
		}
	case TimedOut:
		// Of the calls that had this limit, only the first doubles it.
		if b := r.backoff.Load(); b < 40 && float64(s.Limit) >= 0.9*r.limit(b) {
			r.backoff.CompareAndSwap(b, b+1)
		}
	}
}

func (r *rfc6298) measure(took float32) {
	for {
		have := r.smoothed.Load()
		mean, deviation := unpack(have)
		if have == 0 {
			mean, deviation = took, took/2
		} else {
			deviation += (abs(mean-took) - deviation) / 4
			mean += (took - mean) / 8
		}
		if r.smoothed.CompareAndSwap(have, pack(mean, deviation)) {
			return
		}
	}
}

func (r *rfc6298) Estimate(_ int64, b Bounds) Estimate {
	e := Estimate{Limit: b.clamp(scaled(1, r.limit(r.backoff.Load()))), State: Resolved}
	if r.smoothed.Load() == 0 {
		e.State = Cold
	}
	return e
}

// limit is the limit in ns after so many doublings.
func (r *rfc6298) limit(doublings int32) float64 {
	base := float64(r.initial)
	if word := r.smoothed.Load(); word != 0 {
		mean, deviation := unpack(word)
		base = float64(mean) + 4*float64(deviation)
	}
	return math.Ldexp(base, int(doublings))
}

func (r *rfc6298) finished() int64           { return r.done.Load() }
func (r *rfc6298) quantiles(int64) Quantiles { return Quantiles{} }

func pack(a, b float32) uint64 {
	return uint64(math.Float32bits(a))<<32 | uint64(math.Float32bits(b))
}

func unpack(word uint64) (a, b float32) {
	return math.Float32frombits(uint32(word >> 32)), math.Float32frombits(uint32(word))
}

func abs(x float32) float32 { return max(x, -x) }
