package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	buraksezer "github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
	"github.com/dgryski/go-rendezvous"
	"github.com/serialx/hashring"
	"github.com/stretchr/testify/require"
	"stathat.com/c/consistent"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/canary"
)

// Identities as long as many are, and as UUIDs are.
const (
	shortID = "user-12345678901"
	longID  = "550e8400-e29b-41d4-a716-446655440000"
)

// splitter is a picker that gives a tenth of all identities to v2.
func splitter(opts ...canary.Option) *canary.Picker {
	return sluice.Must(canary.New("bench", "v1", append(opts, canary.WithVersion("v2", 0, canary.Percent(10)))...))
}

// members are ten instances, one of which is to be the canary, for the peers that know
// no weights.
func members() []string {
	all := make([]string, 10)
	for i := range all {
		all[i] = fmt.Sprint("instance-", i)
	}
	return all
}

// plainXX is the hash that buraksezer leaves to the user.
type plainXX struct{}

func (plainXX) Sum64(data []byte) uint64 { return xxhash.Sum64(data) }

// member is an instance as buraksezer wants it.
type member string

func (m member) String() string { return string(m) }

// Which version an identity gets, with a canary of 10 %. Of the peers only serialx has
// weights, in points of a ring; the others choose one of ten instances. "sluice" is the
// bare split of 16 bytes; "counted" adds one to a counter of the version, "decide" does
// too and also looks for wishes and says why; "-uuid" is of 36 bytes.
func BenchmarkCanaryPick(b *testing.B) {
	pick := func(name, id string, opts ...canary.Option) {
		run(b, name, func(*testing.B) loops {
			p := splitter(opts...)
			return loops{
				serial: func(b *testing.B) {
					for b.Loop() {
						if p.Pick(id) == nil {
							b.Fatal("no version")
						}
					}
				},
				parallel: func(b *testing.B, pb *testing.PB) {
					for pb.Next() {
						if p.Pick(id) == nil {
							b.Error("no version")
							return
						}
					}
				},
			}
		})
	}
	pick("sluice", shortID, canary.WithoutCounts())
	pick("sluice-uuid", longID, canary.WithoutCounts())
	pick("sluice-counted", shortID)
	pick("sluice-counted-uuid", longID)
	decide := func(name, id string) {
		run(b, name, func(*testing.B) loops {
			p := splitter()
			return loops{
				serial: func(b *testing.B) {
					for b.Loop() {
						if d := p.Decide(canary.Input{ID: id, Source: canary.FromUser}); d.Version == nil {
							b.Fatal("no version")
						}
					}
				},
				parallel: func(b *testing.B, pb *testing.PB) {
					for pb.Next() {
						if d := p.Decide(canary.Input{ID: id, Source: canary.FromUser}); d.Version == nil {
							b.Error("no version")
							return
						}
					}
				},
			}
		})
	}
	decide("sluice-decide", shortID)
	decide("sluice-decide-uuid", longID)
	run(b, "sluice-random", func(*testing.B) loops {
		p := splitter()
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if p.PickRandom() == nil {
						b.Fatal("no version")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if p.PickRandom() == nil {
						b.Error("no version")
						return
					}
				}
			},
		}
	})
	run(b, "buraksezer", func(*testing.B) loops {
		var all []buraksezer.Member
		for _, name := range members() {
			all = append(all, member(name))
		}
		c := buraksezer.New(all, buraksezer.Config{PartitionCount: 271, ReplicationFactor: 20, Load: 1.25, Hasher: plainXX{}})
		key := []byte(shortID)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if c.LocateKey(key) == nil {
						b.Fatal("no member")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if c.LocateKey(key) == nil {
						b.Error("no member")
						return
					}
				}
			},
		}
	})
	run(b, "stathat", func(*testing.B) loops {
		c := consistent.New()
		c.Set(members())
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, err := c.Get(shortID); err != nil {
						b.Fatal(err)
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, err := c.Get(shortID); err != nil {
						b.Error(err)
						return
					}
				}
			},
		}
	})
	run(b, "serialx", func(*testing.B) loops {
		ring := hashring.NewWithWeights(map[string]int{"v1": 900, "v2": 100})
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, ok := ring.GetNode(shortID); !ok {
						b.Fatal("no node")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, ok := ring.GetNode(shortID); !ok {
						b.Error("no node")
						return
					}
				}
			},
		}
	})
	run(b, "rendezvous", func(*testing.B) loops {
		r := rendezvous.New(members(), xxhash.Sum64String)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if r.Lookup(shortID) == "" {
						b.Fatal("no node")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if r.Lookup(shortID) == "" {
						b.Error("no node")
						return
					}
				}
			},
		}
	})
}

// The hash of package canary is XXH64 as the library has it that everybody uses, for
// every length and seed.
func TestCanaryHashIsXXH64(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 5)
	var d xxhash.Digest
	for length := range 200 {
		for range 5 {
			salt, from := text[r.IntN(len(text)):], r.IntN(len(text)-length+1)
			id := text[from : from+length]
			d.ResetWithSeed(xxhash.Sum64String(salt))
			_, err := d.WriteString(id)
			require.NoError(t, err)
			require.Equal(t, uint32((d.Sum64()>>32)*1_000_000>>32), canary.HashPoint(salt, id), "%d bytes", length)
		}
	}
}
