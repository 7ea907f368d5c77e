package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// three are limiters of a user, an API and all, whose tokens do not come back during a
// test.
func three(t *testing.T, user, api, all int64) (layers []Layer, left func() [3]int64) {
	t.Helper()
	limiters := [3]*Limiter{}
	for i, burst := range []int64{user, api, all} {
		l, err := New([]string{"user", "api", "all"}[i], Every(time.Hour), WithBurst(burst))
		require.NoError(t, err)
		limiters[i] = l
		layers = append(layers, l.Layer())
	}
	return layers, func() (n [3]int64) {
		for i, l := range limiters {
			n[i] = l.Peek(0).Remaining()
		}
		return n
	}
}

func TestTakeAll_AllOrNothing(t *testing.T) {
	for _, tc := range []struct {
		user, api, all int64
		n              int64
		refused        string // by whom
	}{
		{2, 2, 2, 2, ""},
		{1, 2, 2, 2, "user"},
		{2, 1, 2, 2, "api"},
		{2, 2, 1, 2, "all"},
		{1, 1, 1, 2, "user"},
		{2, 1, 1, 2, "api"},
		{3, 2, 1, 0, ""},
		{3, 2, 1, -1, "user"},
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			for name, take := range map[string]func(n int64, layers ...Layer) Decision{
				"TakeAll": TakeAll,
				"TakeEach": func(n int64, layers ...Layer) Decision {
					return TakeEach(make([]Decision, len(layers)), n, layers...)
				},
			} {
				layers, left := three(t, tc.user, tc.api, tc.all)
				before := left()
				for range 3 { // the second time a layer that refused is asked first
					d := take(tc.n, layers...)
					require.Equal(t, tc.refused == "", d.OK(), name)
					if d.OK() {
						assert.Equal(t, "user", d.Resource(), "the most specific of those that agreed")
						assert.Equal(t, [3]int64{before[0] - tc.n, before[1] - tc.n, before[2] - tc.n}, left(), name)
						break
					}
					assert.Equal(t, tc.refused, d.Resource(), name)
					assert.Equal(t, tc.refused, d.Err().(*LimitError).Resource(), name)
					assert.Equal(t, before, left(), name)
				}
			}
		})
	}
}

func TestTakeAll_LayersThatAreNone(t *testing.T) {
	var none *Limiter
	var nobody *Priorities
	layers, left := three(t, 1, 1, 1)
	assert.True(t, TakeAll(1).OK())
	assert.True(t, TakeAll(1, Layer{}).OK())
	assert.True(t, TakeAll(1, none.Layer(), nobody.Layer(sluice.P0), Layer{}).OK())
	d := TakeAll(1, Layer{}, layers[0], none.Layer(), layers[1], Layer{})
	assert.True(t, d.OK())
	assert.Equal(t, [3]int64{0, 0, 1}, left())
	assert.Equal(t, "api", TakeAll(1, Layer{}, layers[2], none.Layer(), layers[1]).Resource())
	assert.Equal(t, [3]int64{0, 0, 1}, left())
	var taken [3]Decision
	assert.True(t, TakeEach(taken[:], 1, Layer{}, layers[2], Layer{}).OK())
	assert.Equal(t, [3]int64{0, 0, 0}, left())
	for _, l := range []Layer{{}, layers[2], {}} {
		l.Refund(taken[1])
		l.Refund(taken[0])
	}
	assert.Equal(t, [3]int64{0, 0, 1}, left())
}

// Every caller is counted once by every layer whose answer he got: in all of them if he
// was admitted, and only by the one that refused if not.
func TestTakeAll_CountsAnswers(t *testing.T) {
	user, all := build(t, Every(maxPer)), build(t, Unlimited())
	blocked := build(t, Blocked())
	require.True(t, TakeAll(1, user.Layer(), all.Layer()).OK())
	for range 3 {
		require.False(t, TakeAll(1, user.Layer(), all.Layer()).OK())
		require.False(t, TakeAll(1, all.Layer(), blocked.Layer()).OK())
	}
	assert.EqualValues(t, 1, user.Snapshot().Totals.Admitted)
	assert.EqualValues(t, 3, user.Snapshot().Refused.Limited)
	assert.EqualValues(t, 1, all.Snapshot().Totals.Admitted)
	assert.EqualValues(t, 3, blocked.Snapshot().Refused.Blocked)

	var taken [2]Decision
	layers := [2]Layer{all.Layer(), build(t, PerSecond(7)).Layer()}
	require.True(t, TakeEach(taken[:], 5, layers[:]...).OK())
	for i, l := range layers {
		l.Refund(taken[i])
	}
	assert.EqualValues(t, 1, all.Snapshot().Totals.Refunded)
	assert.EqualValues(t, 7, layers[1].of.peek(0, 0, 1<<40).Remaining())
}

// A layer that refused is asked first, so that nobody's tokens are taken and given
// back; when it has some again it is as if it had never refused.
func TestTakeAll_PeeksAtWhoRefusedLast(t *testing.T) {
	layers, left := three(t, 5, 5, 1)
	all := layers[2].of.taker.(*Limiter)
	require.True(t, TakeAll(1, layers...).OK())
	require.False(t, TakeAll(1, layers...).OK())
	assert.True(t, layers[2].of.refusing.Load())
	user := layers[0].of.taker.(*Limiter)
	user.cur.Load().own.used.Add(-1) // would be seen if anything was taken and given back in full
	mark := user.cur.Load().own.used.Load()
	require.False(t, TakeAll(1, layers...).OK())
	assert.Equal(t, mark, user.cur.Load().own.used.Load())
	all.cur.Load().own.used.Store(-all.cur.Load().own.burst)
	require.True(t, TakeAll(1, layers...).OK())
	assert.False(t, layers[2].of.refusing.Load())
	assert.Equal(t, [3]int64{3, 3, 0}, left())
	require.True(t, TakeAll(1, layers[:2]...).OK())
}

// Goroutines that ask for layers in every order: nothing hangs, nothing is minted and
// nothing is lost.
func TestTakeAll_Race(t *testing.T) {
	const tokens = 3_000
	layers, left := three(t, 2*tokens, tokens, 2*tokens)
	orders := [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}}
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for _, order := range orders {
		wg.Go(func() {
			for range 2 * tokens {
				if TakeAll(1, layers[order[0]], layers[order[1]], layers[order[2]]).OK() {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, tokens, admitted.Load())
	assert.Equal(t, [3]int64{tokens, 0, tokens}, left())
}

// Random calls against the plain way to do it: look at all, then take from all.
func TestTakeAll_Model(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 200 {
		var limiters, twins [3]*Limiter
		var layers [3]Layer
		for i := range limiters {
			c := with(DefaultConfigOf(Rate{1 + r.Int64N(5), time.Duration(1 + r.Int64N(100))}), func(c *Config) { c.Burst = 1 + r.Int64N(9) })
			limiters[i] = newLimiter(fmt.Sprint(i), settings{Config: c}, 1)
			twins[i] = newLimiter(fmt.Sprint(i), settings{Config: c}, 1)
			layers[i] = limiters[i].Layer()
		}
		now := int64(1)
		for range 100 {
			now += r.Int64N(60)
			n := 1 + r.Int64N(4)
			want := ""
			for _, l := range twins {
				if want == "" && !l.peek(0, n, now).OK() {
					want = l.name
				}
			}
			if want == "" {
				for _, l := range twins {
					l.take(0, n, now)
				}
			}
			d := takeAll(n, now, layers[:])
			require.Equal(t, want == "", d.OK())
			if want != "" && layers[d.Resource()[0]-'0'].of.refusing.Load() {
				// Of several that refuse, one that refused last may answer first.
				require.False(t, twins[d.Resource()[0]-'0'].peek(0, n, now).OK())
			}
			for i := range limiters {
				is, _ := limiters[i].cur.Load().own.level(now)
				should, _ := twins[i].cur.Load().own.level(now)
				require.Equal(t, should, is)
			}
		}
	}
}
