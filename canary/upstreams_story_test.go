package canary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A consistent-hash library panicked with "not enough room to distribute partitions" when
// a member was added, and took the actor system built on it down when that grew from 3 to
// 7 nodes. Here adding returns an error or works, however tight the bound.
// https://github.com/buraksezer/consistent/issues/13
// https://github.com/Tochemey/goakt/issues/1009
func TestComplaint24_ScalingUpNeverPanics(t *testing.T) {
	u := upstreamsOf(t, WithLoadFactor(1.01))
	for i, name := range hosts(60) {
		require.NoError(t, u.Add(name, 1))
		for k := range 20 {
			_, err := u.Acquire(strconv.Itoa(k))
			require.NoError(t, err, "%d instances", i+1)
		}
	}
	assert.EqualValues(t, 60*20, u.Snapshot().InFlight)
}

// With one point a node, two nodes of a ring shared a thousand keys 966 to 34; another
// ring's twenty points were not much better.
// https://github.com/serialx/hashring/issues/27
// https://github.com/stathat/consistent/issues/10
func TestComplaint24_TwoNodesShareEvenly(t *testing.T) {
	got := loads(belongs(t, upstreamsOf(t, WithUpstreams("cache-1", "cache-2")), 1000))
	assert.InDelta(t, 500, got["cache-1"], 60)
	assert.InDelta(t, 500, got["cache-2"], 60)
}

// The same ring ignores a weight of 0 or less in silence, so a node cannot be set to get
// nothing.
func TestStory_WeightZeroIsNothing(t *testing.T) {
	u := upstreamsOf(t, WithUpstream("a", 1), WithUpstream("b", 0))
	assert.Equal(t, map[string]int{"a": 1000}, loads(belongs(t, u, 1000)))
	require.NoError(t, u.SetWeight("a", 0))
	_, err := u.Pick("x")
	assert.ErrorIs(t, err, ErrNoUpstream)
}

// Kitex's consistent-hash balancer seeds its hash anew in each process
// (pkg/loadbalance/consist.go, hashSeed = maphash.MakeSeed()), so two gateways, or one
// after a restart, send the same user to different instances. Here the answers are
// written down.
func TestStory_EveryProcessChoosesAlike(t *testing.T) {
	small := upstreamsOf(t, WithUpstreams(hosts(10)...))
	large := upstreamsOf(t, WithUpstreams(hosts(100)...))
	weighted := upstreamsOf(t, WithUpstream("a", 1), WithUpstream("b", 3))
	for id, want := range chosen {
		for i, u := range []*Upstreams{small, large, weighted} {
			n, err := u.Pick(id)
			require.NoError(t, err)
			assert.Equal(t, want[i], n.Name(), id)
		}
	}
}

// Traefik's rendezvous balancer hashes address and name with FNV-1a, whose last byte does
// not reach the upper bits: with weights of 3 to 1 a server whose name differs from the
// other's in the last character only gets nothing at all, where it should get a quarter.
func TestStory_NamesThatDiffInTheLastByte(t *testing.T) {
	for _, names := range [][2]string{{"appv1", "appv2"}, {"http://10.0.0.1:8081", "http://10.0.0.1:8082"}, {"a", "b"}} {
		u := upstreamsOf(t, WithUpstream(names[0], 3), WithUpstream(names[1], 1))
		got := loads(belongs(t, u, 20_000))
		assert.InDelta(t, 0.25, float64(got[names[1]])/20_000, 0.015, names)
	}
}

// Traefik's weighted round robin looks for the next server in an endless loop, with its
// mutex held, when every healthy one is fenced and the only one that is not fenced is
// down.
func TestStory_NobodyLeftIsAnAnswer(t *testing.T) {
	for _, n := range []int{3, 100} {
		u := upstreamsOf(t, WithUpstreams(hosts(n)...))
		require.NoError(t, u.MarkDown(hosts(n)[0]))
		for _, name := range hosts(n)[1:] {
			require.NoError(t, u.Drain(name))
		}
		_, err := u.Acquire("x")
		assert.ErrorIs(t, err, ErrNoUpstream)
		_, err = u.Pick("x")
		assert.ErrorIs(t, err, ErrNoUpstream)
	}
}

// go-rendezvous's Remove always panics with an index out of range; and a consistent-hash
// library with bounded loads keeps the load of who was removed in its sum, so its bound
// gets wider for ever.
// https://github.com/dgryski/go-rendezvous
// https://github.com/lafikl/consistent
func TestStory_RemoveWorks(t *testing.T) {
	u := upstreamsOf(t, WithUpstreams(hosts(40)...))
	var leases []UpstreamLease
	for i := range 400 {
		lease, err := u.Acquire(strconv.Itoa(i))
		require.NoError(t, err)
		leases = append(leases, lease)
	}
	names := hosts(40)
	rand.New(rand.NewPCG(1, 15)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		require.NoError(t, u.Remove(name))
	}
	assert.ErrorIs(t, u.Remove(names[0]), ErrUnknownUpstream)
	for i := range leases {
		leases[i].Done()
	}
	assert.Zero(t, u.Snapshot().InFlight)
}

// A Maglev table that depends on the order in which the nodes were given is another one
// on every replica that gets its list from a map.
// https://github.com/dgryski/go-maglev
func TestStory_OrderDoesNotMatter(t *testing.T) {
	for _, n := range []int{10, 100} {
		names := hosts(n)
		u := upstreamsOf(t, WithUpstreams(names...))
		slices.Reverse(names)
		assert.Equal(t, belongs(t, u, 5000), belongs(t, upstreamsOf(t, WithUpstreams(names...)), 5000))
	}
}

// When the instance is chosen by the hash that has chosen the version, the users of a
// canary of 10 % all lie close together: all of them land on one of ten hosts, where the
// host is taken by multiplying and shifting. Unleash had the same bug in the variants of
// a gate, and broke seven SDKs to mend it.
// https://github.com/Unleash/unleash-go-sdk/pull/145
func TestStory_CanaryUsersSpreadOverItsInstances(t *testing.T) {
	for _, salt := range []string{"checkout", "upstreams/checkout"} {
		p := sluice.Must(New("checkout", "v1", WithVersion("v2", 0, Percent(10)), WithSalt(salt)))
		for _, n := range []int{10, 50} {
			u := upstreamsOf(t, WithUpstreams(hosts(n)...))
			got, users := map[string]int{}, 0
			for i := range ids {
				id := fmt.Sprint("user-", i)
				if p.Pick(id).Name() != "v2" {
					continue
				}
				users++
				node, err := u.Pick(id)
				require.NoError(t, err)
				got[node.Name()]++
			}
			require.Len(t, got, n)
			for name, k := range got {
				mean := float64(users) / float64(n)
				assert.InDelta(t, mean, k, 4.5*math.Sqrt(mean), name) // what chance alone would do
			}
		}
	}
}

// What is busy all the time must not starve: the bound is on what is under way, and a
// request that ends makes room.
func TestStory_RoomComesBack(t *testing.T) {
	u := upstreamsOf(t, WithUpstreams(hosts(3)...))
	home, err := u.Pick("hot")
	require.NoError(t, err)
	first, _ := u.Acquire("hot")
	second, _ := u.Acquire("hot")
	assert.Equal(t, home.Name(), first.Upstream().Name())
	assert.NotEqual(t, home.Name(), second.Upstream().Name(), "two of two would be more than its share")
	first.Done()
	third, _ := u.Acquire("hot")
	assert.Equal(t, home.Name(), third.Upstream().Name())
}
