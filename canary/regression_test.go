package canary

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// Whoever hit the canary got a cookie that kept him there, and whoever did not threw
// again with the next request: within seconds all users were in a canary of 10 %. An
// identity that is kept, and not a version, leaves the share where it is, at every
// moment.
//
// https://github.com/fluxcd/flagger/issues/1532, https://github.com/fluxcd/flagger/issues/1647,
// https://github.com/fluxcd/flagger/pull/1655.
func TestComplaint01_EverybodyEndsInTheCanary(t *testing.T) {
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(10))))
	f := sluice.Must(NewIdentifier(lookups, WithIssue()))
	const clients = 1000
	var cookies [clients]string
	touched := map[int]bool{}
	for round := range 50 {
		inside := 0
		for c := range clients {
			who := f.Identify(request{device: cookies[c]})
			if who.Source == Issued {
				cookies[c] = who.ID
			}
			if p.Decide(Input{ID: who.ID, Source: who.Source}).Version.Name() == "v2" {
				inside++
				touched[c] = true
			}
		}
		sd := math.Sqrt(clients * 0.1 * 0.9)
		require.InDelta(t, 100, inside, 6*sd, "round %d; the ids are random", round)
		require.Len(t, touched, inside, "and they are always the same")
	}
}

// With a hash policy and weights, the weights were thrown per request or the hash chose
// among the hosts of all versions: a user saw both versions.
//
// https://github.com/istio/istio/issues/1703, https://github.com/istio/istio/issues/9764,
// https://github.com/istio/istio/issues/33343, https://github.com/envoyproxy/envoy/issues/8167,
// https://github.com/envoyproxy/envoy/issues/29027, https://github.com/envoyproxy/gateway/issues/9775.
func TestComplaint02_WeightSplitIgnoresTheHash(t *testing.T) {
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(20))))
	inside := 0
	for user := range 1000 {
		id := fmt.Sprint("user-", user)
		first := p.Pick(id)
		for range 1000 / 50 {
			require.Same(t, first, p.Pick(id))
			require.Same(t, first, p.Decide(Input{ID: id}).Version)
		}
		if first.Name() == "v2" {
			inside++
		}
	}
	assert.InDelta(t, 200, inside, 40, "and the weights hold too")
}

// A client with its cookie went back and forth.
//
// https://github.com/kubernetes/ingress-nginx/issues/3717,
// https://github.com/kubernetes/ingress-nginx/issues/12444, https://github.com/traefik/traefik/issues/6883.
func TestComplaint03_StickinessBounces(t *testing.T) {
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(50))))
	f := sluice.Must(NewIdentifier(lookups, WithIssue()))
	for range 50 {
		jar, seen := "", map[*Version]bool{}
		for range 100 {
			who := f.Identify(request{device: IssuedID(jar)})
			jar = who.ID
			seen[p.Decide(Input{ID: who.ID, Source: who.Source}).Version] = true
		}
		require.Len(t, seen, 1)
	}
}

// A header that should force a version was ignored once there was a session cookie.
//
// https://github.com/kubernetes/ingress-nginx/issues/8246.
func TestComplaint04_OverrideLosesToAffinity(t *testing.T) {
	tokens := sluice.Must(NewTokens(newKey, nil))
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(10)), WithTokens(tokens)))
	text, err := tokens.Sign(Token{Rollout: "shop", Version: "v2", Expires: inAnHour()})
	require.NoError(t, err)
	id := userIn(t, p, "v1")
	assert.Equal(t, "v2", p.Decide(Input{ID: id, Sticky: "v1", Token: text}).Version.Name())
	assert.Equal(t, "v1", p.Decide(Input{ID: id, Sticky: "v1", Override: "v2"}).Version.Name(), "without leave it does not")
}

// All users send an id already, and a split by it was refused as a feature.
//
// https://github.com/kubernetes/ingress-nginx/pull/5913.
func TestComplaint05_SplitByAnIDThatIsThere(t *testing.T) {
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(50))))
	f := sluice.Must(NewIdentifier([]Lookup[map[string][]string]{{FromDevice, func(header map[string][]string) string {
		return OneValue(header["X-Device-Id"])
	}}}))
	inside := 0
	for i := range 1000 {
		header := map[string][]string{"X-Device-Id": {fmt.Sprint("device-", i)}}
		first := p.Pick(f.Identify(header).ID)
		require.Same(t, first, p.Pick(f.Identify(header).ID))
		if first.Name() == "v2" {
			inside++
		}
	}
	assert.InDelta(t, 500, inside, 62)
	assert.Equal(t, Identity{}, f.Identify(map[string][]string{"X-Device-Id": {"a", "b"}}), "two values are none")
}

// The route of a header disappeared in the middle of a rollout: with a restart of the
// controller, with an unready replica set, with the next weight.
//
// https://github.com/argoproj/argo-rollouts/issues/4486,
// https://github.com/argoproj/argo-rollouts/issues/4561, https://github.com/argoproj/argo-rollouts/issues/4716.
func TestComplaint18_OverridesSurviveEveryChange(t *testing.T) {
	build := func() *Picker {
		return sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(10)), WithVersion("v3", 1, 0)))
	}
	p := build()
	check := func(p *Picker, after string) {
		t.Helper()
		d := p.Decide(Input{ID: "tester", Override: "v2", Authorized: true})
		require.Equal(t, "v2", d.Version.Name(), after)
		require.Equal(t, Override, d.Reason, after)
	}
	check(p, "New")
	require.NoError(t, p.SetWeights(map[string]Weight{"v2": Percent(50)}))
	check(p, "SetWeights")
	require.NoError(t, p.SetWeights(map[string]Weight{"v2": 0, "v3": Percent(1)}))
	check(p, "a weight of 0")
	require.NoError(t, p.Rollback("v3", "another version"))
	check(p, "a rollback of another version")
	c := p.Config()
	c.Versions = append(c.Versions, VersionConfig{"v4", 2, Percent(1)})
	require.NoError(t, p.Update(c))
	check(p, "Update")
	again := build()
	require.NoError(t, again.Apply(throughJSON(t, p.Plan())))
	check(again, "a restart")
	require.NoError(t, p.Drain("v2", time.Hour))
	check(p, "Drain")
}

// All of the traffic came back at once to a stable version that had been scaled down.
//
// https://github.com/argoproj/argo-rollouts/issues/3020,
// https://github.com/argoproj/argo-rollouts/issues/3372, https://github.com/argoproj/argo-rollouts/issues/3888.
func TestComplaint19_RollbackSwampsTheStableVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(80))))
		require.NoError(t, p.RollbackOver("v2", "errors", 8*time.Minute))
		for minute := range 9 {
			assert.Equal(t, Percent(float64(20+10*minute)), p.Share("v1"))
			time.Sleep(time.Minute)
		}
		q := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(80))))
		require.NoError(t, q.Rollback("v2", "errors"))
		assert.Equal(t, All, q.Share("v1"), "by default it is instant")
	})
}

// A user in the canary of one service should be in that of the next, where there is
// one; a version that the next does not know must not be an error there.
//
// https://github.com/fluxcd/flagger/issues/580, https://github.com/fluxcd/flagger/issues/631,
// https://github.com/servicemeshinterface/smi-spec/issues/163,
// https://github.com/istio/istio/issues/54450, https://github.com/envoyproxy/envoy/issues/19312.
func TestComplaint21_CanariesOfTwoServicesLineUp(t *testing.T) {
	a := sluice.Must(New("frontend", "v1", WithSalt("suite"), WithVersion("v2", 0, Percent(10))))
	b := sluice.Must(New("backend", "v1", WithSalt("suite"), WithVersion("v2", 0, Percent(10))))
	c := sluice.Must(New("billing", "v1", WithSalt("suite")))
	for i := range 3000 {
		id := fmt.Sprint("user-", i)
		from := a.Pick(id).Name()
		require.Equal(t, from, b.Pick(id).Name(), "with one salt they agree without a word")
		d := b.Decide(Input{Override: from, Authorized: true})
		require.Equal(t, from, d.Version.Name(), "and with a word from a trusted peer without an id")
		d = c.Decide(Input{ID: id, Override: from, Authorized: true})
		require.Equal(t, "v1", d.Version.Name(), "where the version is unknown, the stable one serves")
	}
	assert.Positive(t, c.Snapshot().Ignored["override/unknown_version"])
}

// A cookie kept users on a target that was gone, or should have nobody; and others
// wished that old sessions could stay on a weight of 0.
//
// https://github.com/traefik/traefik/issues/1299, https://github.com/traefik/traefik/issues/8157.
func TestComplaint23_PinnedToADeadVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(10)), WithVersion("v3", 1, Percent(10))))
		require.NoError(t, p.SetWeights(map[string]Weight{"v2": 0}))
		assert.Equal(t, "v1", p.Decide(Input{ID: userIn(t, p, "v1"), Sticky: "v2"}).Version.Name(), "0 is nobody")
		require.NoError(t, p.Drain("v3", time.Hour))
		old := Input{ID: "old session", Sticky: "v3"}
		assert.Equal(t, "v3", p.Decide(old).Version.Name(), "whoever wants old sessions to stay says so, and for how long")
		time.Sleep(time.Hour)
		assert.Equal(t, "v1", p.Decide(old).Version.Name())
		require.NoError(t, p.Retire("v3"))
		assert.Equal(t, "v1", p.Decide(old).Version.Name(), "what is gone serves nobody")
	})
}

// Libraries panicked when members came or went, and split 966 to 34.
//
// https://github.com/buraksezer/consistent/issues/13, https://github.com/Tochemey/goakt/issues/1009,
// https://github.com/serialx/hashring/issues/27, https://github.com/stathat/consistent/issues/10; the
// Remove of dgryski/go-rendezvous panics always.
func TestComplaint24_NoPanicAndNoImbalance(t *testing.T) {
	p := pickerOf(t)
	for n := 1; n <= MaxLanes+2; n++ { // up, one more than there are lanes, and then down
		c := p.Config()
		c.Versions = append(c.Versions, VersionConfig{canary(n), n - 1, PPM(50_000)})
		err := p.Update(c)
		assert.Equal(t, n > MaxLanes, err != nil)
	}
	for _, s := range p.Snapshot().Versions[1:] {
		require.NoError(t, p.Retire(s.Name))
		require.NotNil(t, p.Pick("alice"))
	}
	require.Equal(t, All, p.Share("stable"))

	two := sluice.Must(New("two", "a", WithVersion("b", 0, Percent(50))))
	inside := 0
	for i := range 1000 {
		if two.Pick(fmt.Sprint(i)).Name() == "b" {
			inside++
		}
	}
	assert.InDelta(t, 500, inside, 62)
}

// Not reported anywhere we know of, and found while reading.
func TestFound_NamesDoNotDecide(t *testing.T) {
	// In traefik's rendezvous hashing, names that differ in the last byte with weights
	// of 3 to 1 gave the second nothing: the hash of a name decided.
	p := sluice.Must(New("shop", "appv1", WithVersion("appv2", 0, Percent(25))))
	inside := 0
	for i := range 20_000 {
		if p.Pick(fmt.Sprintf("10.0.%d.%d", i/256, i%256)).Name() == "appv2" {
			inside++
		}
	}
	assert.InDelta(t, 5000, inside, 250)
}

func TestFound_NothingAtAllIsNoPanic(t *testing.T) {
	// Unleash's SDK for Go panicked where the stickiness was absent.
	p := sluice.Must(New("shop", "v1"))
	assert.Equal(t, "v1", p.Decide(Input{}).Version.Name())
	assert.Equal(t, "v1", p.Pick("").Name())
}

// Envoy takes the hash modulo the sum of the weights: 36:4 to 36:9 is 10 % to 20 %, and
// a quarter of all users moved, some of them back. Here the weights are of a whole.
func TestFound_TheSumOfWeightsDoesNotReshuffle(t *testing.T) {
	before, err := Shares(map[string]int{"stable": 36, "c0": 4})
	require.NoError(t, err)
	after, err := Shares(map[string]int{"stable": 36, "c0": 9})
	require.NoError(t, err)
	p := pickerOf(t, 0)
	require.NoError(t, p.SetWeights(before))
	d, err := p.Preview(after)
	require.NoError(t, err)
	assert.Equal(t, []Move{{"stable", "c0", PPM(100_000)}}, d.Moves)
}

// Another hash than ours is given the salt in force.
func TestWithHash(t *testing.T) {
	p := sluice.Must(New("shop", "v1", WithSalt("flag"), WithVersion("v2", 0, Percent(50)),
		WithHash(func(salt, id string) uint32 { return uint32(len(salt) + len(id)*100_000) })))
	assert.Equal(t, HashPoint("flag", "a"), p.Decide(Input{ID: "a"}).Point, "users are told apart by the point of our own hash")
	assert.Equal(t, "v2", p.Pick("aaaa").Name())
	assert.Equal(t, "v1", p.Pick("aaaaa").Name())
	assert.Equal(t, "v1", p.Pick("aaaaaaaaaaaaaa").Name(), "a point that there is not is nobody's, and so the stable version's")
}
