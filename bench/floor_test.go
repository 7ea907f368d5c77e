package bench

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/sluicego/sluice/slidingwindow"
)

// What nothing here can be faster than: a reading of the clock that the whole
// project uses, one atomic addition, and a cache line's way to another core and
// back (alone: the same two stores by one core).
func BenchmarkFloor(b *testing.B) {
	run(b, "clock", func(b *testing.B) loops {
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					slidingwindow.Now()
				}
			},
			parallel: func(_ *testing.B, pb *testing.PB) {
				for pb.Next() {
					slidingwindow.Now()
				}
			},
		}
	})
	run(b, "atomic", func(b *testing.B) loops {
		n := &struct {
			_ [128]byte
			atomic.Uint64
			_ [120]byte
		}{}
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					n.Add(1)
				}
			},
			parallel: func(_ *testing.B, pb *testing.PB) {
				for pb.Next() {
					n.Add(1)
				}
			},
		}
	})
	b.Run("pingpong", func(b *testing.B) {
		b.Run("serial", func(b *testing.B) {
			r := new(rally)
			for b.Loop() {
				r.turn.Store(ping)
				r.turn.Store(pong)
			}
		})
		b.Run("parallel", func(b *testing.B) {
			if runtime.GOMAXPROCS(0) < 2 {
				b.Skip("a cache line has nowhere to go on one core")
			}
			r := new(rally)
			go r.answer()
			defer r.turn.Store(over)
			for b.Loop() {
				r.serve()
			}
		})
	})
}
