package bench

import (
	"context"
	"testing"
	"time"

	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"github.com/zeromicro/go-zero/core/load"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/adaptive"
)

// newSystem looks at its signals, which have been seen, and none of which is above its
// threshold: goroutines of a benchmark wait for processors, but not for a minute.
func newSystem(b *testing.B, opts ...adaptive.SystemOption) *adaptive.System {
	opts = append([]adaptive.SystemOption{adaptive.WithQueueDelay(time.Minute), adaptive.WithLoad1(0)}, opts...)
	s := sluice.Must(adaptive.NewSystem("bench", opts...))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-done
	})
	for len(s.Snapshot().Signals) == 0 { // it has not looked yet
		time.Sleep(time.Millisecond) // Run looks in real time
	}
	return s
}

// newGoZeroShedder and newBBR look at the CPU, and compute what may be under way only
// when that is busy, which here it never is enough: this is what they cost while all is
// well. Both keep how long calls took in windows under a mutex, and allocate for each
// call. Neither looks at the ctx.
func newGoZeroShedder() load.Shedder {
	return load.NewAdaptiveShedder(load.WithCpuThreshold(1_000_000))
}

func newBBR() *bbr.BBR { return bbr.NewLimiter(bbr.WithCPUThreshold(1_000_000)) }

// protecting asks a System before and tells it after a call.
func protecting(s *adaptive.System, ctx context.Context) loops {
	return loops{
		serial: func(b *testing.B) {
			for b.Loop() {
				p, err := s.Allow(ctx)
				if err != nil {
					b.Fatal(err)
				}
				p.Done(nil)
			}
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			for pb.Next() {
				p, err := s.Allow(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				p.Done(nil)
			}
		},
	}
}

// A process that has nothing to complain of: asking before a call, and telling after it
// that it went well. sluice has rules for which nobody needs to know how long calls
// take, sluice-timed one for how long they take, as the peers do; sluice-allow is the
// asking alone.
func BenchmarkSystem(b *testing.B) {
	ctx := requestContext(b)
	run(b, "sluice", func(b *testing.B) loops { return protecting(newSystem(b), ctx) })
	run(b, "sluice-timed", func(b *testing.B) loops { return protecting(newSystem(b, adaptive.WithAvgRT(time.Hour)), ctx) })
	run(b, "sluice-allow", func(b *testing.B) loops {
		s := newSystem(b)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, err := s.Allow(ctx); err != nil {
						b.Fatal(err)
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, err := s.Allow(ctx); err != nil {
						b.Error(err)
						return
					}
				}
			},
		}
	})
	run(b, "go-zero", func(*testing.B) loops {
		s := newGoZeroShedder()
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					p, err := s.Allow()
					if err != nil {
						b.Fatal(err)
					}
					p.Pass()
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					p, err := s.Allow()
					if err != nil {
						b.Error(err)
						return
					}
					p.Pass()
				}
			},
		}
	})
	run(b, "aegis", func(*testing.B) loops {
		l := newBBR()
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					done, err := l.Allow()
					if err != nil {
						b.Fatal(err)
					}
					done(ratelimit.DoneInfo{})
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					done, err := l.Allow()
					if err != nil {
						b.Error(err)
						return
					}
					done(ratelimit.DoneInfo{})
				}
			},
		}
	})
}

// A call that is refused, since as many as may be are under way, is counted by the
// signal that refused it.
func BenchmarkSystemRefuse(b *testing.B) {
	ctx := requestContext(b)
	run(b, "sluice", func(b *testing.B) loops {
		s := newSystem(b, adaptive.WithMode(adaptive.Hard), adaptive.WithConcurrency(1))
		if _, err := s.Allow(ctx); err != nil {
			b.Fatal(err)
		}
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, err := s.Allow(ctx); err == nil {
						b.Fatal("admitted")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, err := s.Allow(ctx); err == nil {
						b.Error("admitted")
						return
					}
				}
			},
		}
	})
}
