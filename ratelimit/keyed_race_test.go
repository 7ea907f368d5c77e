package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/internal/clock"
)

const racers = 8

// together runs f in racers goroutines that begin at the same time, each with its own
// numbers.
func together(f func(r *rand.Rand)) {
	var all, ready sync.WaitGroup
	ready.Add(racers)
	for i := range uint64(racers) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), i))
			ready.Done()
			ready.Wait()
			f(r)
		})
	}
	all.Wait()
}

func rounds(full, short int) int {
	if testing.Short() || raceEnabled {
		return short
	}
	return full
}

// At one instant a key that nobody pushes out gives exactly its burst, however many
// goroutines bring it in at once: it is never in two slots. So it does when it goes from
// class to class all the time, except that a take which the move overtakes may count
// twice.
func TestKeyed_ANewKeyIsNeverInTwoSlots(t *testing.T) {
	const burst, keys, now = 100, 2, int64(1000 * time.Hour)
	for round := range rounds(400, 80) {
		k := keyed(t, PerHour(1), WithBurst(burst), WithMaxKeys(40), WithKeyClass("gold", PerHour(2), burst))
		classes := []*Keyed{k, k.Class("gold")}[:1+round%2]
		var admitted [keys]atomic.Int64
		together(func(r *rand.Rand) {
			for range burst {
				for _, i := range r.Perm(keys) {
					if classes[r.IntN(len(classes))].take(someHash(i), 1, now).OK() {
						admitted[i].Add(1)
					}
				}
			}
		})
		for i := range admitted {
			if len(classes) == 1 {
				require.EqualValues(t, burst, admitted[i].Load())
			}
			require.LessOrEqual(t, admitted[i].Load(), int64(burst))
			require.Greater(t, admitted[i].Load(), int64(burst/2))
		}
		require.EqualValues(t, keys, k.Snapshot().Keys.Held)
		require.EqualValues(t, keys, k.Snapshot().Keys.Settled)
	}
}

// Forty keys push one another out of 16 slots, at one instant, each asked for in either
// class. Each time that a key settles it has a full bucket, which gives each of its
// tokens once: so no answer to a key is given more often than the key settled, and it
// settled once more than it was evicted.
func TestKeyed_EachLifeOfAKeyHasOneBurst(t *testing.T) {
	const burst, keys, now = 4, 40, int64(1000 * time.Hour)
	for _, policy := range []WhenFull{EvictLeastDebt, DenyNew, OverflowKey} {
		t.Run(policy.String(), func(t *testing.T) {
			k := keyed(t, PerHour(1), WithBurst(burst), WithMaxKeys(1), WithWhenFull(policy), WithKeyClass("gold", PerHour(2), burst))
			classes := []*Keyed{k, k.Class("gold")}
			var seen [keys][burst]atomic.Int64 // answers with so many tokens left
			var outside atomic.Int64           // answers without a slot of one's own
			steps := rounds(100_000, 10_000)
			together(func(r *rand.Rand) {
				for range steps {
					i := r.IntN(keys)
					d := classes[r.IntN(2)].take(someHash(i), 1, now)
					switch {
					case d.OK() && d.by.reason == ReasonTooManyKeys:
						outside.Add(1)
					case d.OK():
						seen[i][d.Remaining()].Add(1)
					}
				}
			})
			var lives int64
			for i := range seen {
				full := seen[i][burst-1].Load() // the first of each life
				lives += full
				for left := range seen[i] {
					require.LessOrEqual(t, seen[i][left].Load(), full, "key %d, %d tokens left", i, left)
				}
			}
			s := k.Snapshot().Keys
			assert.LessOrEqual(t, lives, s.Settled)
			assert.Equal(t, s.Settled, s.Held+s.Evicted)
			assert.EqualValues(t, 16, s.Held)
			switch policy {
			case EvictLeastDebt:
				assert.Positive(t, s.Evicted)
			case OverflowKey:
				assert.EqualValues(t, 2*burst, outside.Load(), "a burst for each class")
				fallthrough
			case DenyNew:
				assert.Zero(t, s.Evicted)
			}
		})
	}
}

// someHash is the hash of the i-th key.
func someHash(i int) uint64 { return uint64(i+1) * 0x9E3779B97F4A7C15 }

// A bucket of one token, which its holder gives back, is a lock; and a key whose token
// was given back may lose its slot at any time, for nothing. So of forty keys in 16
// slots, none is ever held by two: a take never counts for another key than its own,
// and never gets lost with the slot.
func TestKeyed_ATokenHasOneHolder(t *testing.T) {
	const keys, now = 40, int64(1000 * time.Hour)
	for _, policy := range []WhenFull{EvictLeastDebt, DenyNew} {
		t.Run(policy.String(), func(t *testing.T) {
			k := keyed(t, PerDay(1), WithBurst(1), WithMaxKeys(1), WithWhenFull(policy), WithoutTotals())
			var holders [keys]atomic.Int64
			var twice, held atomic.Int64
			together(func(r *rand.Rand) {
				for range rounds(100_000, 10_000) {
					i := r.IntN(keys)
					d := k.take(someHash(i), 1, now)
					if !d.OK() {
						continue
					}
					held.Add(1)
					if holders[i].Add(1) > 1 {
						twice.Add(1)
					}
					if r.IntN(4) == 0 {
						runtime.Gosched() // so that others come while it is held
					}
					holders[i].Add(-1)
					k.giveBack(someHash(i), d, now)
				}
			})
			s := k.Snapshot().Keys
			assert.Positive(t, held.Load())
			assert.Greater(t, s.Settled, int64(keys), "they come and go")
			assert.LessOrEqual(t, twice.Load(), s.Evicted)
		})
	}
}

// Keys that are full when they lose their slot lose nothing: with time going on, what a
// key gives stays within its burst, what came, and a burst for each time that it was
// evicted before it was full.
func TestKeyed_AdmitsNoMoreThanItMay(t *testing.T) {
	const burst, keys, perSecond = 5, 40, 20_000
	for _, policy := range []WhenFull{EvictLeastDebt, DenyNew} {
		t.Run(policy.String(), func(t *testing.T) {
			k := keyed(t, PerSecond(perSecond), WithBurst(burst), WithMaxKeys(1), WithWhenFull(policy))
			var kept [keys]atomic.Int64
			steps := rounds(60_000, 6_000)
			began := clock.Now()
			together(func(r *rand.Rand) {
				for range steps {
					i := r.IntN(keys)
					key, n := fmt.Sprint("key ", i), 1+r.Int64N(2)
					switch d := k.Take(key, n); {
					case !d.OK():
					case r.IntN(4) == 0:
						k.Refund(key, d)
					default:
						kept[i].Add(n)
					}
				}
			})
			came := perSecond*float64(clock.Now()-began)/1e9 + 1
			s := k.Snapshot()
			var total int64
			for i := range kept {
				n := kept[i].Load()
				total += n
				assert.LessOrEqual(t, float64(n), burst+came+float64(burst*s.Keys.Evicted))
				if policy == DenyNew {
					assert.LessOrEqual(t, float64(n), burst+came)
				}
			}
			assert.LessOrEqual(t, float64(total), keys*(burst+came)+float64(burst*s.Keys.Evicted))
			assert.Positive(t, total)
			assert.GreaterOrEqual(t, s.Totals.Tokens, total)
			assert.Equal(t, int64(racers*steps), s.Totals.Admitted+s.Refused.Limited+s.Keys.Denied, "every answer is counted once")
			if policy == DenyNew {
				assert.Zero(t, s.Keys.Evicted)
			}
		})
	}
}

// What all give back at one instant is there again.
func TestKeyed_RefundsAreConserved(t *testing.T) {
	const burst, now = 50, 1000
	for range rounds(100, 20) {
		k := keyed(t, PerDay(1), WithBurst(burst), WithMaxKeys(40))
		var kept atomic.Int64
		together(func(r *rand.Rand) {
			for range 100 {
				switch d := k.take(7<<40, 1+r.Int64N(3), now); {
				case !d.OK():
				case r.IntN(2) == 0:
					k.giveBack(7<<40, d, now)
				default:
					kept.Add(d.Tokens())
				}
			}
		})
		// For giveBack time goes on, and it leaves out what comes by itself.
		left := k.peek(7<<40, 0, now).Remaining()
		require.LessOrEqual(t, kept.Load()+left, int64(burst))
		require.GreaterOrEqual(t, kept.Load()+left, int64(burst-1))
	}
}

// Limits change, classes come and go, while keys are asked for: nothing is found in
// disorder, and no key gets more than the larger of its bursts at one instant, once for
// each change and each move to another class.
func TestKeyed_UpdateWhileKeysComeAndGo(t *testing.T) {
	k := keyed(t, PerHour(1), WithBurst(3), WithMaxKeys(100))
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		together(func(r *rand.Rand) {
			for {
				select {
				case <-stop:
					return
				default:
				}
				key, k := fmt.Sprint(r.IntN(150)), k.Class(fmt.Sprint("class ", r.IntN(3)))
				switch r.IntN(5) {
				case 0:
					k.Peek(key, 1)
				case 1:
					k.Debit(key, 1)
				case 2:
					TakeAll(1, k.By(key), k.By(key))
				default:
					k.Refund(key, k.Take(key, 1))
				}
			}
		})
	})
	c := k.Config()
	for i := range rounds(2000, 400) {
		c.Rate, c.Burst = PerHour(int64(1+i%7)), int64(1+i%5)
		c.Classes = []KeyClass{{fmt.Sprint("class ", i%2), PerMinute(int64(1 + i%11)), int64(1 + i%3), Auto}}
		if i%5 == 0 {
			c.Classes[0].Rate, c.Classes[0].Burst = Unlimited(), Auto
		}
		require.NoError(t, k.Update(c))
	}
	close(stop)
	all.Wait()
	s := k.Snapshot().Keys
	var held int64
	for i := range k.space.table.sets {
		for way := range keyWays {
			slot := k.space.table.sets[i].slot(way)
			if key := slot.key.Load(); key != 0 {
				held++
				require.NotNil(t, k.space.ruleOf(key))
				require.NotEqual(t, int64(frozen), slot.used.Load())
			}
		}
	}
	assert.Equal(t, held, s.Held)
}
