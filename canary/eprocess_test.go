package canary

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The formula as it stands in the paper, in numbers instead of logarithms.
func plainE(x, y int, p float64) float64 {
	sum := 0.0
	for _, r := range []float64{1.25, 1.5, 2, 3, 5, 10, 20, 50, 100} {
		q := p * r / (p*r + 1 - p)
		sum += math.Pow(q/p, float64(x)) * math.Pow((1-q)/(1-p), float64(y))
	}
	return sum / 9
}

func TestEProcess_IsTheFormula(t *testing.T) {
	for _, p := range []float64{0.0001, 0.01, 0.1, 0.5, 0.9} {
		for x := range 12 {
			for y := range 12 {
				var e eprocess
				e.add(int64(x), int64(y), p)
				assert.InEpsilonf(t, plainE(x, y, p), math.Exp(e.log()), 1e-9, "x=%d y=%d p=%v", x, y, p)
			}
		}
	}
}

func TestEProcess_StepsAddUp(t *testing.T) {
	var whole, parts eprocess
	whole.add(7, 31, 0.1)
	parts.add(3, 11, 0.1)
	parts.add(4, 20, 0.1)
	assert.InDelta(t, whole.log(), parts.log(), 1e-9)

	before := parts
	parts.add(100, 0, 1) // nobody to compare with
	parts.add(100, 0, 0)
	parts.add(100, 0, math.NaN())
	assert.Equal(t, before, parts)
}

// The mean of E over all that can happen next is at most what it was: with that it is a
// supermartingale, and Ville's inequality is the promise.
func TestEProcess_DoesNotGrowByItself(t *testing.T) {
	for _, p := range []float64{0.01, 0.1, 0.5} {
		for x := range 6 {
			for y := range 6 {
				next := p*plainE(x+1, y, p) + (1-p)*plainE(x, y+1, p)
				assert.InEpsilon(t, plainE(x, y, p), next, 1e-9)
				better := p / 2 // a canary that fails less often
				assert.LessOrEqual(t, better*plainE(x+1, y, p)+(1-better)*plainE(x, y+1, p), plainE(x, y, p)*(1+1e-9))
			}
		}
	}
}

// runs is how many runs a simulation makes; -short makes fewer of the same, and so does
// the race detector, under which each takes ten times as long.
func runs(n int) int {
	if testing.Short() || raceDetector {
		return n / 10
	}
	return n
}

// Looked at after every single failure, the evidence accuses a good canary in at most a
// share alpha of all runs; a test that was made for one look, here a z-test, in far more.
func TestEProcess_FalseAlarms(t *testing.T) {
	const p, failures = 0.1, 2000 // as of 200 000 calls of which one in a hundred fails
	alphas := []float64{0.05, 0.01, 0.001}
	n, wrong, wrongZ := runs(1000), make([]int, len(alphas)), 0
	for run := range n {
		rng := rand.New(rand.NewPCG(uint64(run), 1))
		var e eprocess
		var x, y int64
		most, alarmZ := 0.0, false
		for range failures {
			if rng.Float64() < p {
				x++
				e.add(1, 0, p)
				most = max(most, e.log()) // a failure of stable makes it less
			} else {
				y++
				e.add(0, 1, p)
			}
			k := float64(x + y)
			alarmZ = alarmZ || k >= 20 && (float64(x)-k*p)/math.Sqrt(k*p*(1-p)) > 1.645
		}
		for i, alpha := range alphas {
			wrong[i] += count(most >= -math.Log(alpha))
		}
		wrongZ += count(alarmZ)
	}
	t.Logf("of %d good canaries accused: %v at alpha %v; %d by a z-test of 5 %% looked at as often", n, wrong, alphas, wrongZ)
	for i, alpha := range alphas {
		assert.LessOrEqual(t, float64(wrong[i]), max(1.5*alpha*float64(n), 2))
	}
	assert.Greater(t, float64(wrongZ), 0.2*float64(n))
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// How many requests of the canary it takes, at the median, looked at every ten. The
// numbers are those of a simulation of the same rules that others made.
func TestEProcess_Detection(t *testing.T) {
	const p, base = 0.1, 0.01
	for _, tc := range []struct {
		alpha, rate float64
		median      int
	}{
		{0.05, 0.02, 1270}, {0.05, 0.03, 310}, {0.05, 0.05, 100}, {0.05, 0.2, 20}, {0.05, 1, 10},
		{0.01, 0.02, 1860}, {0.01, 0.03, 500}, {0.01, 0.05, 160}, {0.01, 0.2, 30}, {0.01, 1, 10},
		{0.001, 0.02, 2450}, {0.001, 0.03, 720}, {0.001, 0.05, 240}, {0.001, 0.2, 30}, {0.001, 1, 10},
	} {
		var took []int
		for run := range runs(1000) {
			rng := rand.New(rand.NewPCG(uint64(run), 2))
			var e eprocess
			n := 0
			for e.log() < -math.Log(tc.alpha) && n < 100_000 {
				var x, y int64
				for range 10 {
					x += int64(count(rng.Float64() < tc.rate))
				}
				for range 90 {
					y += int64(count(rng.Float64() < base))
				}
				e.add(x, y, p)
				n += 10
			}
			took = append(took, n)
		}
		slices.Sort(took)
		median := took[len(took)/2]
		t.Logf("alpha %v, %v %% of the calls fail instead of 1 %%: found after %d requests of the canary", tc.alpha, tc.rate*100, median)
		assert.LessOrEqual(t, float64(median), 1.5*float64(tc.median))
	}
}

// The bounds hold at every look together: in at most a share alpha of the runs is the true
// share ever outside.
func TestBounds_HoldWhereverOneStops(t *testing.T) {
	const alpha = 0.05
	for _, share := range []float64{0.02, 0.2, 0.7} {
		n, below, above := runs(1000), 0, 0
		for run := range n {
			rng := rand.New(rand.NewPCG(uint64(run), 3))
			var k, all int64
			tooHigh, tooLow := false, false
			for range 1000 {
				all++
				k += int64(count(rng.Float64() < share))
				// Cheaper than the bound itself, and the same: see TestBounds_AreWhereTheEvidenceIs.
				outside := against(share, 1, 1, k, all) >= -math.Log(alpha)
				tooHigh = tooHigh || outside && float64(k) > share*float64(all)
				tooLow = tooLow || outside && float64(k) < share*float64(all)
			}
			below += count(tooLow)
			above += count(tooHigh)
		}
		assert.LessOrEqual(t, float64(below+above), 1.5*alpha*float64(n), "share %v", share)
	}
}

func TestBounds_AreWhereTheEvidenceIs(t *testing.T) {
	for _, alpha := range []float64{0.05, 0.001} {
		for _, n := range []int64{1, 5, 30, 1000, 1_000_000} {
			for _, k := range []int64{0, 1, n / 3, n - 1, n} {
				lo, hi := atLeast(k, n, alpha), atMost(k, n, alpha)
				share := float64(k) / float64(n)
				require.LessOrEqual(t, lo, share)
				require.GreaterOrEqual(t, hi, share)
				if lo > 0 {
					assert.InDelta(t, -math.Log(alpha), against(lo, 1, 1, k, n), 1e-3)
				}
				if hi < 1 {
					assert.InDelta(t, -math.Log(alpha), against(hi, 1, 1, k, n), 1e-3)
				}
			}
		}
	}
	assert.Zero(t, atLeast(0, 0, 0.05))
	assert.EqualValues(t, 1, atMost(0, 0, 0.05), "of nothing, all is possible")
	// Thirty users without a failure are what a tolerance of a fifth takes.
	assert.Less(t, atMost(0, 30, 0.05), 0.2)
	assert.Greater(t, atMost(0, 28, 0.05), 0.2)
}

func TestRatioAtMost(t *testing.T) {
	assert.Equal(t, math.Inf(1), ratioAtMost(0, 0, 0.1, 0.05))
	assert.Equal(t, math.Inf(1), ratioAtMost(7, 0, 0.1, 0.05))
	assert.Equal(t, math.Inf(1), ratioAtMost(7, 9, 1, 0.05))
	assert.Greater(t, ratioAtMost(10, 90, 0.1, 0.05), 1.5, "a hundred failures are too few to exclude half as many more")
	assert.Less(t, ratioAtMost(100, 900, 0.1, 0.05), 1.5)
	assert.Greater(t, ratioAtMost(100, 900, 0.1, 0.05), 1.0)
}

func TestMismatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	alarms, n := 0, runs(500)
	for range n {
		var canary, stable int64
		alarm := false
		for range 3000 {
			if rng.Float64() < 0.05 {
				canary++
			} else {
				stable++
			}
			alarm = alarm || mismatch(canary, stable, 0.05) > math.Log(1000)
		}
		alarms += count(alarm)
	}
	assert.LessOrEqual(t, alarms, 2, "of %d rollouts whose users come as they should", n)
	assert.Greater(t, mismatch(650, 9_350, 0.05), math.Log(1000), "6.5 %% instead of 5 %%")
	assert.Greater(t, mismatch(0, 1000, 0.05), math.Log(1000), "the canary's users never arrive")
	assert.Zero(t, mismatch(10, 0, 1))
}

func TestLinearCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	for _, users := range []int{0, 1, 30, 1000, 10_000, 30_000} {
		const cells = 10_000
		var seen [cells]bool
		for range users {
			seen[rng.IntN(cells)] = true
		}
		var k int64
		for _, s := range seen {
			k += int64(count(s))
		}
		assert.InDelta(t, users, linearCount(k, cells), 0.05*float64(users)+1)
	}
	assert.Zero(t, linearCount(0, 0))
	assert.EqualValues(t, 99_035, linearCount(10_000, 10_000), "full")
}
