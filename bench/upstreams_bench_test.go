package bench

import (
	"fmt"
	"testing"

	buraksezer "github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
	"github.com/dgryski/go-rendezvous"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/canary"
)

// instances are names as addresses are.
func instances(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("10.0.%d.%d:8080", i/200, i%200+1)
	}
	return all
}

// Which instance an id gets: "pick" only tells, "acquire" also holds a place on it and
// gives it back, which bounded load needs. Ten instances are ranked, a hundred have a
// table. Of the peers rendezvous has ranks, and buraksezer partitions of a ring.
func BenchmarkUpstreams(b *testing.B) {
	for _, n := range []int{10, 100} {
		run(b, fmt.Sprintf("sluice-pick-%d", n), func(*testing.B) loops {
			u := sluice.Must(canary.NewUpstreams("bench", canary.WithUpstreams(instances(n)...)))
			return loops{
				serial: func(b *testing.B) {
					for b.Loop() {
						if _, err := u.Pick(shortID); err != nil {
							b.Fatal(err)
						}
					}
				},
				parallel: func(b *testing.B, pb *testing.PB) {
					for pb.Next() {
						if _, err := u.Pick(shortID); err != nil {
							b.Error(err)
							return
						}
					}
				},
			}
		})
		run(b, fmt.Sprintf("sluice-acquire-%d", n), func(*testing.B) loops {
			// The bound is wide, so that two goroutines with one id do not push one another away.
			u := sluice.Must(canary.NewUpstreams("bench", canary.WithUpstreams(instances(n)...), canary.WithLoadFactor(1000)))
			return loops{
				serial: func(b *testing.B) {
					for b.Loop() {
						lease, err := u.Acquire(shortID)
						if err != nil {
							b.Fatal(err)
						}
						lease.Done()
					}
				},
				parallel: func(b *testing.B, pb *testing.PB) {
					for pb.Next() {
						lease, err := u.Acquire(shortID)
						if err != nil {
							b.Error(err)
							return
						}
						lease.Done()
					}
				},
			}
		})
		run(b, fmt.Sprintf("rendezvous-%d", n), func(*testing.B) loops {
			r := rendezvous.New(instances(n), xxhash.Sum64String)
			return loops{
				serial: func(b *testing.B) {
					for b.Loop() {
						r.Lookup(shortID)
					}
				},
				parallel: func(b *testing.B, pb *testing.PB) {
					for pb.Next() {
						r.Lookup(shortID)
					}
				},
			}
		})
		run(b, fmt.Sprintf("buraksezer-%d", n), func(*testing.B) loops {
			c := buraksezer.New(nil, buraksezer.Config{Hasher: plainXX{}, PartitionCount: 2711, ReplicationFactor: 20, Load: 1.25})
			for _, name := range instances(n) {
				c.Add(member(name))
			}
			key := []byte(shortID)
			return loops{
				serial: func(b *testing.B) {
					for b.Loop() {
						c.LocateKey(key)
					}
				},
				parallel: func(b *testing.B, pb *testing.PB) {
					for pb.Next() {
						c.LocateKey(key)
					}
				},
			}
		})
	}
}

// What a result costs the judge: of a call that nobody has called before, and of one by
// somebody who is known already.
func BenchmarkJudge(b *testing.B) {
	p := splitter()
	judged := func(b *testing.B) *canary.Judge {
		j := sluice.Must(canary.NewJudge("bench"))
		if err := j.Begin(canary.Trial{
			Canary: "v2", CanaryWeight: canary.Percent(10), Stable: "v1", StableWeight: canary.Percent(90),
			Generation: p.Generation(),
		}); err != nil {
			b.Fatal(err)
		}
		return j
	}
	d := p.Decide(canary.Input{ID: shortID})
	for name, o := range map[string]sluice.Outcome{"success": sluice.Success, "failure": sluice.Failure} {
		run(b, "sluice-"+name, func(b *testing.B) loops {
			j := judged(b)
			return loops{
				serial: func(b *testing.B) {
					for b.Loop() {
						j.Observe(d, o, 10_000_000)
					}
				},
				parallel: func(b *testing.B, pb *testing.PB) {
					for pb.Next() {
						j.Observe(d, o, 10_000_000)
					}
				},
			}
		})
	}
}
