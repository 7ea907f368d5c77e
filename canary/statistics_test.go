package canary

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// The identities that services see. Each function gives the i-th.
var populations = map[string]func(i int) string{
	"sequential": func(i int) string { return fmt.Sprint(i) },
	"e-mails":    func(i int) string { return fmt.Sprintf("user%d@example.com", i) },
	"IPv4":       func(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255) },
	"UUIDs":      func(i int) string { return fmt.Sprintf("550e8400-e29b-41d4-a716-%012x", i) },
}

// chiSquare of counts against equal parts. With 100 of them the mean is 99, and one of
// a thousand even splits is over 148.
func chiSquare(counts []int, n int) float64 {
	want, sum := float64(n)/float64(len(counts)), 0.0
	for _, c := range counts {
		sum += (float64(c) - want) * (float64(c) - want) / want
	}
	return sum
}

func bucketed(n int, id func(int) string, point func(string) uint32) []int {
	counts := make([]int, 100)
	for i := range n {
		counts[point(id(i))/(points/100)]++
	}
	return counts
}

func TestHash_SplitsEvenly(t *testing.T) {
	const n = 100_000
	for name, id := range populations {
		for _, salt := range []string{"checkout-v2", "search", "a", "b"} {
			got := chiSquare(bucketed(n, id, func(id string) uint32 { return HashPoint(salt, id) }), n)
			assert.Lessf(t, got, 160.0, "%s, salt %s", name, salt)
			assert.Greaterf(t, got, 45.0, "%s, salt %s: more even than chance", name, salt)
		}
	}
}

// The test above finds a bad hash: the high bits of FNV-1a hardly depend on the last
// bytes.
func TestHash_TheTestFindsBadOnes(t *testing.T) {
	fnv := func(id string) uint32 {
		h := uint64(14695981039346656037)
		for i := range len(id) {
			h = (h ^ uint64(id[i])) * 1099511628211
		}
		return toPoint(h)
	}
	assert.Greater(t, chiSquare(bucketed(100_000, populations["sequential"], fnv), 100_000), 1000.0)
}

// Rollouts with different salts are independent: nobody is always first.
//
// https://github.com/togglz/togglz/issues/104, https://github.com/fetlife/rollout/issues/26,
// https://github.com/launchdarkly/LaunchDarkly-Docs/issues/265. And those who want two
// rollouts to go together give them one salt:
// https://github.com/thomaspoignant/go-feature-flag/issues/3391.
func TestComplaint10_NobodyIsAlwaysFirst(t *testing.T) {
	const n, share = 20_000, 100_000
	for name, id := range populations {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = id(i)
		}
		inside := make([][]bool, 20)
		for s := range inside {
			salt := fmt.Sprintf("rollout-%d/v1", s)
			inside[s] = make([]bool, n)
			for i := range n {
				inside[s][i] = HashPoint(salt, ids[i]) < share
			}
		}
		var squares float64
		pairs := 0
		for a := range inside {
			for b := range a {
				both := 0
				for i := range n {
					if inside[a][i] && inside[b][i] {
						both++
					}
				}
				z := (float64(both) - n*0.01) / math.Sqrt(n*0.01*0.99)
				require.Less(t, math.Abs(z), 4.5, "%s: salts %d and %d", name, a, b)
				squares += z * z
				pairs++
			}
		}
		assert.InDelta(t, 1, math.Sqrt(squares/float64(pairs)), 0.25, name)
	}

	small := sluice.Must(New("frontend", "v1", WithSalt("suite"), WithVersion("v2", 0, Percent(5))))
	large := sluice.Must(New("backend", "w1", WithSalt("suite"), WithVersion("w2", 0, Percent(10))))
	for i := range 5000 {
		if id := populations["e-mails"](i); small.Pick(id).Name() == "v2" {
			require.Equal(t, "w2", large.Pick(id).Name(), "with one salt, 5 % are among the 10 %")
		}
	}
}

// A rollout of 0.05 % is one of 0.05 %.
//
// https://github.com/fluxcd/flagger/issues/164, https://github.com/fluxcd/flagger/pull/726,
// https://github.com/growthbook/growthbook/issues/3405,
// https://github.com/open-feature/flagd/issues/1788; 5 of 1000 gave 5 % in
// https://github.com/kubernetes/ingress-nginx/issues/9745.
func TestComplaint06_BelowOnePercent(t *testing.T) {
	p := sluice.Must(New("rollout", "v1", WithVersion("v2", 0, Percent(0.05))))
	v2, hits := p.Version("v2"), 0
	for i := range 1_000_000 {
		if p.Pick(fmt.Sprint("user-", i)) == v2 {
			hits++
		}
	}
	assert.InDelta(t, 500, hits, 68, "three standard deviations; the identities are always the same")
}

// What chance throws has the weights too.
func TestPickRandom_FollowsTheWeights(t *testing.T) {
	p := pickerOf(t, 200_000, 50_000)
	counts := map[string]int{}
	const n = 200_000
	for range n {
		counts[p.PickRandom().Name()]++
	}
	for name, share := range map[string]float64{"c0": 0.2, "c1": 0.05, "stable": 0.75} {
		assert.InDelta(t, n*share, counts[name], 6*math.Sqrt(n*share*(1-share)), name) // one run in 10⁹ is further away
	}
}

// The choice among the instances of a version needs another hash than the choice of
// the version: with the same one, the users of a narrow interval would all land on one
// of ten hosts. With another salt they spread.
//
// SDKs hashed variants within a gate as they had hashed the gate:
// https://github.com/Unleash/unleash-go-sdk/pull/145,
// https://github.com/Unleash/unleash-ruby-sdk/pull/160.
func TestComplaint09_LayersAreIndependent(t *testing.T) {
	p := pickerOf(t, 100_000)
	inside, same, other := 0, make([]int, 10), make([]int, 10)
	for i := range 200_000 {
		id := fmt.Sprint("user-", i)
		if p.Pick(id).Name() != "c0" {
			continue
		}
		inside++
		same[HashPoint("rollout/stable", id)/(points/10)]++
		other[HashPoint("rollout/stable/instances", id)/(points/10)]++
	}
	mean := float64(inside) / 10
	assert.InDelta(t, 20_000, inside, 600)
	assert.Equal(t, inside, same[0], "the same hash puts all on one host: what must not be done")
	for host, n := range other {
		assert.InDelta(t, 1, float64(n)/mean, 0.2, "host %d", host)
	}
}
