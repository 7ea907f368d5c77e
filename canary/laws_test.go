package canary

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// pickerOf is a picker with canaries c0, c1, … of these weights in lanes 0, 1, …
func pickerOf(t testing.TB, ppm ...int) *Picker {
	t.Helper()
	var opts []Option
	for lane, n := range ppm {
		opts = append(opts, WithVersion(canary(lane), lane, PPM(n)))
	}
	p, err := New("rollout", "stable", opts...)
	require.NoError(t, err)
	return p
}

func canary(lane int) string { return "c" + strconv.Itoa(lane) }

// weightsOf are weights for the versions of pickerOf.
func weightsOf(ppm ...int) map[string]Weight {
	w := map[string]Weight{}
	for lane, n := range ppm {
		w[canary(lane)] = PPM(n)
	}
	return w
}

// dealt returns who owns each point, for every step-th one.
func dealt(p *Picker, step uint32) []*Version {
	all := make([]*Version, 0, points/step+1)
	for point, t := uint32(0), p.current.Load(); point < points; point += step {
		all = append(all, t.at(point))
	}
	return all
}

// draw returns weights of n lanes that do not collide: lanes that grow towards one
// another have half of the points between them.
func draw(r *rand.Rand, n int) []int {
	w := make([]int, n)
	room := []int{1_000_000, 1_000_000}
	if n > 2 {
		room = []int{500_000, 500_000} // below 1/2: lanes 0 and 3; above: lanes 1 and 2
	} else {
		room[1] = 0
	}
	for lane := range w {
		side := 0
		if n > 2 && (lane == 1 || lane == 2) {
			side = 1
		}
		w[lane] = r.IntN(room[side] + 1)
		if r.IntN(3) == 0 {
			w[lane] = min(w[lane], r.IntN(1000))
		}
		room[side] -= w[lane]
	}
	return w
}

// The laws of reassignment, on random weights of up to four canaries whose lanes do
// not collide. With one and two they never do.
//
// GrowthBook's users were swapped between variations when a coverage changed:
// https://github.com/growthbook/growthbook-js/pull/22,
// https://github.com/growthbook/growthbook-js/issues/4.
func TestComplaint13_WeightChangesSwapNobody(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	for range runs(400) {
		n := 1 + r.IntN(4)
		checkReassignment(t, draw(r, n), draw(r, n))
	}
}

func FuzzReassignment(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint8(2))
	f.Fuzz(func(t *testing.T, a, b uint64, n uint8) {
		r := rand.New(rand.NewPCG(a, b))
		lanes := 1 + int(n%4)
		checkReassignment(t, draw(r, lanes), draw(r, lanes))
	})
}

func checkReassignment(t *testing.T, from, to []int) {
	t.Helper()
	p := pickerOf(t, from...)
	before := dealt(p, 997)
	preview, err := p.Preview(weightsOf(to...))
	require.NoError(t, err)
	require.NoError(t, p.SetWeights(weightsOf(to...)))
	after := dealt(p, 997)

	grown, growth := true, 0
	for lane := range from {
		grown = grown && to[lane] >= from[lane]
		growth += max(0, to[lane]-from[lane])
	}
	stable := p.Stable()
	for i := range before {
		if before[i] == after[i] {
			continue
		}
		// L1: when no canary shrinks, nobody leaves one.
		require.False(t, grown && before[i] != stable, "%v → %v: point %d leaves %v, and none has shrunk", from, to, 997*i, before[i])
	}
	// L2: a canary gives up what it shrinks by, or gets what it grows by, and nothing
	// beyond; so nobody moves between two unless the one shrinks and the other grows.
	for lane := range from {
		var gain, loss Weight
		for _, m := range preview.Moves {
			if m.To == canary(lane) {
				gain += m.Share
			}
			if m.From == canary(lane) {
				loss += m.Share
			}
		}
		require.Equal(t, PPM(max(0, to[lane]-from[lane])), gain, "%v → %v, lane %d", from, to, lane)
		require.Equal(t, PPM(max(0, from[lane]-to[lane])), loss, "%v → %v, lane %d", from, to, lane)
		require.Equal(t, PPM(to[lane]), p.Share(canary(lane)))
	}
	if grown {
		require.Equal(t, PPM(growth), preview.Moved())
	}
	// L3: the way back gives everyone back what they had.
	require.NoError(t, p.SetWeights(weightsOf(from...)))
	require.Equal(t, before, dealt(p, 997))
}

// Preview is exact, also where lanes collide: it says of every point what SetWeights
// then does.
func TestLaw_PreviewIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	const grain = 100 // weights and anchors are multiples of it, so every grain-th point tells of all
	for range runs(300) {
		n := 1 + r.IntN(6)
		parts := func() []int {
			w, left := make([]int, n), 1_000_000/grain
			for i := range w {
				w[i] = r.IntN(left + 1)
				left -= w[i]
				w[i] *= grain
			}
			return w
		}
		from, to := parts(), parts()
		p := pickerOf(t, from...)
		d, err := p.Preview(weightsOf(to...))
		require.NoError(t, err)
		before := dealt(p, grain)
		require.NoError(t, p.SetWeights(weightsOf(to...)))
		after := dealt(p, grain)
		counted, run := map[Move]Weight{}, Weight(0)
		for i := range before {
			run += grain
			if i+1 == len(before) || before[i+1] != before[i] || after[i+1] != after[i] {
				if before[i] != after[i] {
					counted[Move{From: before[i].Name(), To: after[i].Name()}] += run
				}
				run = 0
			}
		}
		require.Len(t, d.Moves, len(counted))
		for pair, n := range counted {
			require.Equal(t, n, d.Of(pair.From, pair.To), "%v → %v: %v", from, to, pair)
		}
	}
}

// L3: the layout depends on lanes and weights alone. Replicas that came to their
// weights by other ways, with versions named in another order, agree.
func TestLaw_ReplicasAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		to := draw(r, 4)
		a, b := pickerOf(t, draw(r, 4)...), pickerOf(t, 0, 0, 0, 0)
		for range 5 {
			require.NoError(t, a.SetWeights(weightsOf(draw(r, 4)...)))
		}
		require.NoError(t, a.SetWeights(weightsOf(to...)))
		require.NoError(t, b.SetWeights(weightsOf(to...)))
		c := sluice.Must(New("rollout", "stable", WithVersion("c3", 3, PPM(to[3])), WithVersion("c1", 1, PPM(to[1])),
			WithVersion("c0", 0, PPM(to[0])), WithVersion("c2", 2, PPM(to[2]))))
		for i := range 300 {
			id := fmt.Sprint("u", i)
			require.Equal(t, a.Pick(id).Name(), b.Pick(id).Name())
			require.Equal(t, a.Pick(id).Name(), c.Pick(id).Name())
		}
	}
}

// L6: what has nothing to do with the weights moves nobody: changes of other rollouts
// and routes, a reload of the same configuration, a restart, a plan that comes back.
func TestLaw_UnrelatedChangesMoveNobody(t *testing.T) {
	p := pickerOf(t, 100_000, 50_000)
	before := dealt(p, 101)
	same := func(why string) {
		t.Helper()
		require.Equal(t, before, dealt(p, 101), why)
	}
	require.NoError(t, p.Update(p.Config()))
	assert.Equal(t, uint64(1), p.Generation(), "an equal configuration is no change")
	c := p.Config()
	c.Versions = append(c.Versions, VersionConfig{"c2", 2, 0})
	c.NoIdentity = StableVersion
	require.NoError(t, p.Update(c))
	same("a version that has no weight yet")
	require.NoError(t, p.Kill("test"))
	require.NoError(t, p.Revive())
	same("a kill that is over")
	require.NoError(t, p.Retire("c2"))
	same("the end of a version without weight")
	require.NoError(t, p.Drain("c0", time.Hour))
	require.NoError(t, p.SetWeights(map[string]Weight{"c0": PPM(100_000)}))
	same("a drain that was taken back")

	again := sluice.Must(New("rollout", "stable"))
	text, err := json.Marshal(p.Plan())
	require.NoError(t, err)
	var plan Plan
	require.NoError(t, json.Unmarshal(text, &plan))
	require.NoError(t, again.Apply(plan))
	for i, v := range dealt(again, 101) {
		require.Equal(t, before[i].Name(), v.Name(), "a restart with the plan")
	}
}

// Where three lanes or more collide, more than the minimum moves, but as said: 60 % for
// a growth by 50 %, and it is the same way back.
func TestLaw_CollidingLanesAreStillReversible(t *testing.T) {
	p := pickerOf(t, 100_000, 100_000, 100_000)
	before := dealt(p, 101)
	d, err := p.Preview(weightsOf(600_000))
	require.NoError(t, err)
	assert.Equal(t, Percent(60), d.Moved())
	assert.Equal(t, Percent(10), d.Of("c2", "c0"))
	require.NoError(t, p.SetWeights(weightsOf(600_000)))
	require.NoError(t, p.SetWeights(weightsOf(100_000)))
	assert.Equal(t, before, dealt(p, 101))
}

// Taking a version out gives its users to the stable version and leaves those of the
// others alone, whatever its place in the list.
func TestLaw_RemovalGivesToStableOnly(t *testing.T) {
	for gone := range 4 {
		p := pickerOf(t, 100_000, 90_000, 80_000, 70_000)
		before := dealt(p, 101)
		out, stable := p.Version(canary(gone)), p.Stable()
		require.NoError(t, p.Retire(canary(gone)))
		for i, v := range dealt(p, 101) {
			want := before[i]
			if want == out {
				want = stable
			}
			require.Equal(t, want, v)
		}
	}
}
