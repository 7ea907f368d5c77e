package bench

import (
	"math"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/ratelimit"
)

const (
	plenty = 1_000_000_000        // tokens a second: more than anybody here takes
	never  = 366 * 24 * time.Hour // until there is another token
)

// newLimiter admits everything. By default it counts its answers, which the peers do
// not; sluice-uncounted is what compares with them in what it does.
func newLimiter(opts ...ratelimit.Option) *ratelimit.Limiter {
	return sluice.Must(ratelimit.New("bench", ratelimit.PerSecond(plenty), opts...))
}

// newEmptyLimiter admits nothing.
func newEmptyLimiter(opts ...ratelimit.Option) *ratelimit.Limiter {
	opts = append(opts, ratelimit.WithInitial(0))
	return sluice.Must(ratelimit.New("bench", ratelimit.Every(never), opts...))
}

// newEmptyXTime and newEmptyFailsafe admit nothing. x/time keeps tokens and times under
// a mutex, failsafe-go counts in fixed periods under a mutex. uber/ratelimit cannot
// refuse: it sleeps.
func newEmptyXTime() *rate.Limiter {
	l := rate.NewLimiter(rate.Every(never), 1)
	l.Allow()
	return l
}

func newEmptyFailsafe() ratelimiter.RateLimiter[any] {
	l := ratelimiter.NewBursty[any](1, never)
	l.TryAcquirePermit()
	return l
}

// allowing asks a limiter of ours, which always gives the same answer.
func allowing(l *ratelimit.Limiter, want bool) loops {
	return loops{
		serial: func(b *testing.B) {
			for b.Loop() {
				if l.Allow() != want {
					b.Fatal(!want)
				}
			}
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			for pb.Next() {
				if l.Allow() != want {
					b.Error(!want)
					return
				}
			}
		},
	}
}

func allowingXTime(l *rate.Limiter, want bool) loops {
	return loops{
		serial: func(b *testing.B) {
			for b.Loop() {
				if l.Allow() != want {
					b.Fatal(!want)
				}
			}
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			for pb.Next() {
				if l.Allow() != want {
					b.Error(!want)
					return
				}
			}
		},
	}
}

func allowingFailsafe(l ratelimiter.RateLimiter[any], want bool) loops {
	return loops{
		serial: func(b *testing.B) {
			for b.Loop() {
				if l.TryAcquirePermit() != want {
					b.Fatal(!want)
				}
			}
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			for pb.Next() {
				if l.TryAcquirePermit() != want {
					b.Error(!want)
					return
				}
			}
		},
	}
}

// A token that is there is taken. uber's limiter has a turn for each call and waits for
// it, which at this rate is over before it is asked.
func BenchmarkLimitAllow(b *testing.B) {
	run(b, "sluice", func(*testing.B) loops { return allowing(newLimiter(), true) })
	run(b, "sluice-uncounted", func(*testing.B) loops { return allowing(newLimiter(ratelimit.WithoutTotals()), true) })
	run(b, "xtime", func(*testing.B) loops { return allowingXTime(rate.NewLimiter(plenty, plenty), true) })
	run(b, "failsafe", func(*testing.B) loops {
		return allowingFailsafe(ratelimiter.NewBursty[any](math.MaxInt32, time.Second), true)
	})
	run(b, "uber", func(*testing.B) loops {
		l := uber.New(plenty)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					l.Take()
				}
			},
			parallel: func(_ *testing.B, pb *testing.PB) {
				for pb.Next() {
					l.Take()
				}
			},
		}
	})
}

// There is no token.
func BenchmarkLimitDeny(b *testing.B) {
	run(b, "sluice", func(*testing.B) loops { return allowing(newEmptyLimiter(), false) })
	run(b, "sluice-uncounted", func(*testing.B) loops { return allowing(newEmptyLimiter(ratelimit.WithoutTotals()), false) })
	run(b, "xtime", func(*testing.B) loops { return allowingXTime(newEmptyXTime(), false) })
	run(b, "failsafe", func(*testing.B) loops { return allowingFailsafe(newEmptyFailsafe(), false) })
}

// layering takes a token of three limiters, or of none.
func layering(one, two, three *ratelimit.Limiter, want bool) loops {
	return loops{
		serial: func(b *testing.B) {
			for b.Loop() {
				if ratelimit.TakeAll(1, one.Layer(), two.Layer(), three.Layer()).OK() != want {
					b.Fatal(!want)
				}
			}
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			for pb.Next() {
				if ratelimit.TakeAll(1, one.Layer(), two.Layer(), three.Layer()).OK() != want {
					b.Error(!want)
					return
				}
			}
		},
	}
}

// Three limiters at once, all or nothing: a user's, an API's, and that of all. In the
// refused ones the last has nothing. No peer does this.
func BenchmarkLayers(b *testing.B) {
	uncounted := ratelimit.WithoutTotals()
	run(b, "sluice", func(*testing.B) loops { return layering(newLimiter(), newLimiter(), newLimiter(), true) })
	run(b, "sluice-uncounted", func(*testing.B) loops {
		return layering(newLimiter(uncounted), newLimiter(uncounted), newLimiter(uncounted), true)
	})
	run(b, "sluice-refused", func(*testing.B) loops { return layering(newLimiter(), newLimiter(), newEmptyLimiter(), false) })
	run(b, "sluice-refused-uncounted", func(*testing.B) loops {
		return layering(newLimiter(uncounted), newLimiter(uncounted), newEmptyLimiter(uncounted), false)
	})
}
