package bench

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/ratelimit"
	"github.com/sluicego/sluice/slidingwindow"
)

// Each key may do as much as it likes, and is never full again: a slot that could be
// given away for nothing would be another measurement.
const keyBurst = 1_000_000

// A household is so many keys, which are asked for in turn, each goroutine beginning
// somewhere else. The keys lie in memory one after the other, where the processor sees
// the next one coming; where a limiter keeps them is what is measured.
type household struct {
	keys    []string
	members atomic.Int64
}

func newHousehold(n int) *household {
	h := &household{keys: make([]string, n)}
	for i := range h.keys {
		h.keys[i] = "user-" + strconv.Itoa(i*7919)
	}
	return h
}

// next returns the key after i.
func (h *household) next(i int) int {
	if i++; i < len(h.keys) {
		return i
	}
	return 0
}

// somewhere is where the next goroutine begins.
func (h *household) somewhere() int { return int(h.members.Add(1)) * 7919 % len(h.keys) }

// furnish makes a limiter, lets all keys in, and returns a function that reports how
// much memory a key takes.
func furnish[T any](h *household, build func() T, enter func(T, string)) (limiter T, report func(*testing.B)) {
	before := inUse()
	limiter = build()
	for _, key := range h.keys {
		enter(limiter, key)
	}
	perKey := (inUse() - before) / float64(len(h.keys))
	return limiter, func(b *testing.B) {
		b.ReportMetric(perKey, "B/key")
		runtime.KeepAlive(limiter)
	}
}

// keyedSluice is measured in a table that is made for just so many keys, and reports how
// many in a hundred of them pushed out another one when they came. It counts its answers,
// which the peers do not; sluice-uncounted is what compares with them.
func keyedSluice(h *household, opts ...ratelimit.KeyedOption) loops {
	opts = append(opts, ratelimit.WithMaxKeys(len(h.keys)), ratelimit.WithBurst(keyBurst))
	k, report := furnish(h,
		func() *ratelimit.Keyed {
			return sluice.Must(ratelimit.NewKeyed("bench", ratelimit.PerMinute(1), opts...))
		},
		func(k *ratelimit.Keyed, key string) { k.Allow(key) })
	lossy := 100 * float64(k.Snapshot().Keys.Evicted) / float64(len(h.keys))
	return loops{
		serial: func(b *testing.B) {
			i := h.somewhere()
			for b.Loop() {
				if !k.Allow(h.keys[i]) {
					b.Fatal("refused")
				}
				i = h.next(i)
			}
			report(b)
			b.ReportMetric(lossy, "%lossy")
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			i := h.somewhere()
			for pb.Next() {
				if !k.Allow(h.keys[i]) {
					b.Error("refused")
					return
				}
				i = h.next(i)
			}
		},
	}
}

// keyedGoLimiter has a bucket with a lock for each key, in a map with another.
func keyedGoLimiter(h *household) loops {
	ctx := context.Background()
	s, report := furnish(h,
		func() limiter.Store {
			return sluice.Must(memorystore.New(&memorystore.Config{Tokens: keyBurst, Interval: time.Hour, InitialAlloc: len(h.keys)}))
		},
		func(s limiter.Store, key string) { _, _, _, _, _ = s.Take(ctx, key) })
	return loops{
		serial: func(b *testing.B) {
			i := h.somewhere()
			for b.Loop() {
				if _, _, _, ok, _ := s.Take(ctx, h.keys[i]); !ok {
					b.Fatal("refused")
				}
				i = h.next(i)
			}
			report(b)
			_ = s.Close(ctx)
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			i := h.somewhere()
			for pb.Next() {
				if _, _, _, ok, _ := s.Take(ctx, h.keys[i]); !ok {
					b.Error("refused")
					return
				}
				i = h.next(i)
			}
		},
	}
}

// keyedThrottled has a number for each key in a map with a lock, which it reads, and
// then compares and swaps.
func keyedThrottled(h *household) loops {
	ctx := context.Background()
	quota := throttled.RateQuota{MaxRate: throttled.PerMin(1), MaxBurst: keyBurst}
	l, report := furnish(h,
		func() *throttled.GCRARateLimiterCtx {
			return sluice.Must(throttled.NewGCRARateLimiterCtx(sluice.Must(memstore.NewCtx(0)), quota))
		},
		func(l *throttled.GCRARateLimiterCtx, key string) { _, _, _ = l.RateLimitCtx(ctx, key, 1) })
	return loops{
		serial: func(b *testing.B) {
			i := h.somewhere()
			for b.Loop() {
				if limited, _, _ := l.RateLimitCtx(ctx, h.keys[i], 1); limited {
					b.Fatal("refused")
				}
				i = h.next(i)
			}
			report(b)
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			i := h.somewhere()
			for pb.Next() {
				if limited, _, _ := l.RateLimitCtx(ctx, h.keys[i], 1); limited {
					b.Error("refused")
					return
				}
				i = h.next(i)
			}
		},
	}
}

// keyedXTime is what one would build by hand: a limiter of x/time for each key, in
// the fastest map there is.
func keyedXTime(h *household) loops {
	fresh := func() (*rate.Limiter, bool) { return rate.NewLimiter(rate.Every(time.Minute), keyBurst), false }
	m, report := furnish(h,
		func() *xsync.Map[string, *rate.Limiter] { return xsync.NewMap[string, *rate.Limiter]() },
		func(m *xsync.Map[string, *rate.Limiter], key string) {
			l, _ := m.LoadOrCompute(key, fresh)
			l.Allow()
		})
	return loops{
		serial: func(b *testing.B) {
			i := h.somewhere()
			for b.Loop() {
				l, _ := m.LoadOrCompute(h.keys[i], fresh)
				if !l.Allow() {
					b.Fatal("refused")
				}
				i = h.next(i)
			}
			report(b)
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			i := h.somewhere()
			for pb.Next() {
				l, _ := m.LoadOrCompute(h.keys[i], fresh)
				if !l.Allow() {
					b.Error("refused")
					return
				}
				i = h.next(i)
			}
		},
	}
}

// keyedFloor is a reading of the clock and one word at random of a table of that size,
// which any limiter must read.
func keyedFloor(h *household) loops {
	table := make([]atomic.Int64, len(h.keys)*5/4*2)
	for i := range table {
		table[i].Store(int64(i))
	}
	return loops{
		serial: func(b *testing.B) {
			x, sum := uint64(h.somewhere()), int64(0)
			for b.Loop() {
				x = x*6364136223846793005 + 1442695040888963407
				sum += slidingwindow.Now() + table[x>>32%uint64(len(table))].Load()
			}
			runtime.KeepAlive(sum)
		},
		parallel: func(_ *testing.B, pb *testing.PB) {
			x, sum := uint64(h.somewhere()), int64(0)
			for pb.Next() {
				x = x*6364136223846793005 + 1442695040888963407
				sum += slidingwindow.Now() + table[x>>32%uint64(len(table))].Load()
			}
			runtime.KeepAlive(sum)
		},
	}
}

func benchmarkKeyed(b *testing.B, keys int) {
	h := newHousehold(keys)
	run(b, "floor", func(*testing.B) loops { return keyedFloor(h) })
	run(b, "sluice", func(*testing.B) loops { return keyedSluice(h) })
	run(b, "sluice-uncounted", func(*testing.B) loops { return keyedSluice(h, ratelimit.WithoutTotals()) })
	run(b, "golimiter", func(*testing.B) loops { return keyedGoLimiter(h) })
	run(b, "throttled", func(*testing.B) loops { return keyedThrottled(h) })
	run(b, "xsync-xtime", func(*testing.B) loops { return keyedXTime(h) })
}

// A token of one of many keys.
func BenchmarkKeyed(b *testing.B)   { benchmarkKeyed(b, 100_000) }
func BenchmarkKeyed1K(b *testing.B) { benchmarkKeyed(b, 1_000) }
func BenchmarkKeyed1M(b *testing.B) { benchmarkKeyed(b, 1_000_000) }
