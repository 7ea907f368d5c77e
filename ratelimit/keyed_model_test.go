package ratelimit

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A keyModel is a Keyed as anybody would write it who had all the memory in the
// world: a textbook bucket for every key there ever was. When a key loses its slot, the
// model forgets its bucket, and says whether that was lawful.
type keyModel struct {
	t       *testing.T
	k       *Keyed
	buckets map[uint64]*modelKey
	evicted int64 // buckets that were not full when they were forgotten
}

type modelKey struct {
	*oracle
	class string
}

// limits is what the oracle needs of a class.
func (m *keyModel) limit(class string) Config {
	c := m.k.Config()
	return c.limitOf(class)
}

// bucket is the bucket of a key that is asked for in that class now. One that comes from
// another class keeps its tokens.
func (m *keyModel) bucket(class string, hash uint64, now int64) *modelKey {
	limit := m.limit(class)
	b := m.buckets[hash]
	if b == nil {
		b = &modelKey{newOracle(limit.Rate, limit.burst(), now), class}
		m.buckets[hash] = b
	}
	b.pass(now)
	if b.class != class {
		b.class = class
		b.change(limit)
	}
	return b
}

// change gives b another limit at the time that it is at.
func (b *modelKey) change(limit Config) {
	full, level, per := b.level.Cmp(b.burst) == 0, b.level, int64(b.rate.Per)
	*b.oracle = *newOracle(limit.Rate, limit.burst(), b.last)
	if full {
		return
	}
	unit := newScale(limit.Rate.perNano(), 0).unit // what the new scale can tell apart
	level.Mul(level, big.NewInt(unit)).Div(level, big.NewInt(per))
	level.Mul(level, big.NewInt(int64(limit.Rate.Per)/unit))
	if level.Cmp(b.burst) < 0 {
		b.level.Set(level)
	}
}

// update changes the configuration, and every bucket at once.
func (m *keyModel) update(c KeyedConfig, now int64) {
	old := m.k.Config()
	ks := m.k.space
	ks.mu.Lock()
	ks.install(c.Clone(), now)
	ks.mu.Unlock()
	for _, b := range m.buckets {
		if old.limitOf(b.class) != c.limitOf(b.class) {
			b.pass(now)
			b.change(c.limitOf(b.class))
		}
	}
}

// slots returns the 16 slots where a key may be.
func (m *keyModel) slots(hash uint64) (all []keySlot) {
	for i := range keyWays {
		all = append(all, m.k.space.table.first(hash).slot(i), m.k.space.table.second(hash).slot(i))
	}
	return all
}

// known is the key in a slot, as the model knows it.
func (m *keyModel) known(key uint64) (uint64, *modelKey) {
	for hash, b := range m.buckets {
		if isKeyOf(key, hash) {
			return hash, b
		}
	}
	return 0, nil
}

// untilFull is how long it takes until the bucket is full.
func (b *modelKey) untilFull(now int64) int64 {
	b.pass(now)
	return b.wait(new(big.Int).Sub(b.burst, b.level))
}

// around does something for a key that may take the slot of another one, and examines
// which one it took.
func (m *keyModel) around(hash uint64, now int64, do func()) {
	slots := m.slots(hash)
	before := make([]uint64, len(slots))
	for i, s := range slots {
		before[i] = s.key.Load()
	}
	held := slices.ContainsFunc(before, func(key uint64) bool { return isKeyOf(key, hash) })
	lossy := m.k.space.tally.keys().Evicted
	do()
	lossy = m.k.space.tally.keys().Evicted - lossy
	for i, s := range slots {
		after := s.key.Load()
		if after&^tagMask == before[i]&^tagMask {
			continue
		}
		require.False(m.t, held, "a key that has a slot takes no other")
		require.True(m.t, isKeyOf(after, hash), "nobody else comes")
		if before[i] == 0 {
			require.Zero(m.t, lossy)
			continue
		}
		gone, b := m.known(before[i])
		require.NotNil(m.t, b)
		wait := b.untilFull(now)
		require.Equal(m.t, wait > 0, lossy == 1, "a loss is counted, and nothing else")
		if wait > 0 {
			m.evicted++
			for _, key := range before {
				_, other := m.known(key)
				require.NotNil(m.t, other, "all slots are taken")
				require.GreaterOrEqual(m.t, other.untilFull(now), wait-1, "the one that would be full soonest goes")
				require.Positive(m.t, other.untilFull(now), "and none that is full")
			}
		}
		delete(m.buckets, gone)
	}
	require.Equal(m.t, m.evicted, m.k.space.tally.keys().Evicted)
}

// Every answer is what the model says, whatever keys come and go, whatever classes they
// are asked for in, and whatever becomes of the limits, in a table so small that keys
// push one another out all the time.
func TestKeyed_Model(t *testing.T) {
	for _, policy := range []WhenFull{EvictLeastDebt, DenyNew} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(policy, " ", seed), func(t *testing.T) {
				t.Parallel()
				walkKeys(t, policy, rand.New(rand.NewPCG(seed, 1)), rounds(20_000, 2_000))
			})
		}
	}
}

var exactKeyRates = []Rate{PerSecond(1), PerSecond(10), PerSecond(100), Every(time.Minute), PerMinute(6)}

func walkKeys(t *testing.T, policy WhenFull, r *rand.Rand, steps int) {
	rate := func() Rate { return exactKeyRates[r.IntN(len(exactKeyRates))] }
	c := DefaultKeyedConfig()
	c.Rate, c.Burst, c.MaxKeys, c.WhenFull = rate(), 1+r.Int64N(9), 8, policy
	c.Classes = []KeyClass{{"gold", rate(), 1 + r.Int64N(20), Auto}}
	now := int64(1)
	m := &keyModel{t: t, k: newKeyed("test", "keyed", c, true, now), buckets: map[uint64]*modelKey{}}
	keys := make([]uint64, 40) // in 16 slots
	made := 0
	another := func() uint64 { made++; return someHash(made)&^tagMask | r.Uint64()&tagMask }
	for i := range keys {
		keys[i] = another()
	}
	for step := range steps {
		switch r.IntN(8) {
		case 0:
			now += r.Int64N(int64(10 * time.Second))
		case 1, 2, 3:
			now += r.Int64N(int64(time.Second))
		}
		if r.IntN(500) == 0 {
			c.Rate, c.Burst, c.Classes = rate(), 1+r.Int64N(9), slices.Clone(c.Classes)
			c.Classes[0].Rate, c.Classes[0].Burst = rate(), 1+r.Int64N(20)
			m.update(c, now)
		}
		if r.IntN(4000) == 0 {
			keys[r.IntN(len(keys))] = another()
		}
		hash, class := keys[r.IntN(len(keys))], ""
		if r.IntN(20) == 0 == (hash%4 != 0) { // most keys mostly stay in their class
			class = "gold"
		}
		k := m.k.Class(class)
		m.step(k, class, hash, r, now)
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
	if policy != EvictLeastDebt {
		assert.Zero(t, m.evicted)
	}
}

// step asks for one key once, and compares.
func (m *keyModel) step(k *Keyed, class string, hash uint64, r *rand.Rand, now int64) {
	n := r.Int64N(4)
	if n == 0 || r.IntN(4) == 0 || n > m.limit(class).burst() {
		before := m.buckets[hash]
		if before != nil {
			o := *before.oracle
			m.buckets[hash] = &modelKey{&oracle{o.rate, new(big.Int).Set(o.burst), new(big.Int).Set(o.level), o.last}, before.class}
		}
		m.compare(k.peek(hash, n, now), class, hash, n, now)
		if before != nil { // looking moves no key to another class
			m.buckets[hash] = before
		}
		return
	}
	if r.IntN(10) == 0 {
		before := m.k.space.tally.keys().Settled
		m.around(hash, now, func() { k.debit(hash, n, now) })
		if m.holds(hash) {
			b := m.bucket(class, hash, now)
			b.take(n)
			if floor := new(big.Int).Neg(b.burst); b.level.Cmp(floor) < 0 {
				b.level.Set(floor)
			}
			return
		}
		require.Equal(m.t, before, m.k.space.tally.keys().Settled)
		return
	}
	var d Decision
	m.around(hash, now, func() { d = k.take(hash, n, now) })
	if m.compare(d, class, hash, n, now); d.OK() {
		m.buckets[hash].take(n)
		if r.IntN(8) == 0 {
			k.giveBack(hash, d, now)
			m.buckets[hash].take(-n)
		}
	}
}

func (m *keyModel) holds(hash uint64) bool {
	_, held := m.k.space.table.search(hash)
	return held
}

// compare compares d with what the model says.
func (m *keyModel) compare(d Decision, class string, hash uint64, n, now int64) {
	if d.by.reason == ReasonTooManyKeys {
		m.denied(d, hash, n, now)
		return
	}
	b := m.bucket(class, hash, now)
	missing := b.missing(n)
	require.Equal(m.t, missing.Sign() <= 0, d.OK(), "%d tokens of %v", n, b.level)
	left := b.remaining()
	if d.OK() && d.mark != untaken {
		left -= n
	}
	require.Equal(m.t, max(0, left), d.Remaining())
	switch {
	case d.OK():
	case n > m.limit(class).burst():
		require.True(m.t, d.Never())
	default:
		require.EqualValues(m.t, b.wait(missing), d.RetryAfter())
	}
}

// denied examines a refusal for want of a slot.
func (m *keyModel) denied(d Decision, hash uint64, n, now int64) {
	require.Equal(m.t, DenyNew, m.k.Config().WhenFull)
	require.False(m.t, m.holds(hash))
	soonest := int64(1 << 62)
	for _, s := range m.slots(hash) {
		_, b := m.known(s.key.Load())
		require.NotNil(m.t, b)
		soonest = min(soonest, b.untilFull(now))
	}
	require.Positive(m.t, soonest)
	if !d.Never() {
		require.EqualValues(m.t, soonest, d.RetryAfter())
	}
	delete(m.buckets, hash) // whatever it had, is full by now
}
