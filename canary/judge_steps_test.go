package canary

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// Some users fail always, with both versions, and every step sees them again. That is no
// evidence that grows from step to step: where they lie was drawn once.
func TestJudge_BadUsersCondemnNobodyHoweverManyStepsThereAre(t *testing.T) {
	const users = 60
	steps := make([]Weight, 20)
	for i := range steps {
		steps[i] = Percent(float64(i + 1))
	}
	rng := rand.New(rand.NewPCG(1, 20))
	n, condemned := runs(150), 0
	for range n {
		j, bad := started(t, steps[0]), make([]uint32, users)
		for i := range bad {
			bad[i] = rng.Uint32N(points)
		}
		for step, w := range steps {
			if step > 0 {
				trial := aTrial(w, uint64(step+1))
				j.begin(trial, 1)
			}
			for _, u := range bad {
				d := split(u, w)
				d.Generation = uint64(step + 1)
				j.Observe(d, outcome(true), 0)
			}
			// To call the good ones is not needed: E goes by those who fail, and the rail by a rate
			// that is made small here.
			s := j.stage.Load()
			s.canary.requests.Add(100_000)
			s.canary.users.Add(10_000)
			if j.verdict(1).Result == Fail {
				condemned++
				break
			}
		}
	}
	assert.LessOrEqual(t, condemned, 1, "of %d good canaries, and one in a thousand may be", n)
}

// As everywhere, no outcome is a success, and a number that is none says nothing.
func TestJudge_OutcomesThatAreNone(t *testing.T) {
	j := started(t, Percent(10))
	j.Observe(split(1, Percent(10)), 0, 0)
	assert.EqualValues(t, 1, j.verdict(1).CanarySeen.Requests)
	j.Observe(split(2, Percent(10)), sluice.Throttled+1, 0)
	j.Observe(split(3, Percent(10)), 255, 0)
	assert.EqualValues(t, 1, j.verdict(1).CanarySeen.Requests)
	for range latencyCalls {
		j.Observe(split(900_000, Percent(10)), 0, 0)
	}
	assert.EqualValues(t, latencyCalls, j.recent.Load().now.Count())
}

// Hashes of other services have few points, on each of which are many users.
func TestJudge_TellsUsersApartWhoShareAPoint(t *testing.T) {
	hundredth := func(salt, id string) uint32 { return HashPoint(salt, id) / 10_000 * 10_000 }
	p := sluice.Must(New("rollout", oldVersion.Name(), WithVersion(newVersion.Name(), 0, Percent(1)), WithHash(hundredth)))
	j := sluice.Must(NewJudge("rollout"))
	require.NoError(t, j.Begin(Trial{Canary: newVersion.Name(), Stable: oldVersion.Name(), CanaryWeight: Percent(1), StableWeight: Percent(99), Generation: 1}))
	for i := range 10_000 {
		d := p.Decide(Input{ID: "user-" + strconv.Itoa(i)})
		j.Observe(d, outcome(d.Version.Name() == newVersion.Name()), 0)
	}
	v := j.Verdict()
	assert.Greater(t, v.CanarySeen.Users, int64(50))
	assert.Equal(t, Fail, v.Result, v.Reason)
}
