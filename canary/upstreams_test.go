package canary

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// hosts are n names that differ in their last characters only, as addresses do.
func hosts(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("10.0.0.%d:8080", i+1)
	}
	return names
}

func upstreamsOf(t testing.TB, opts ...UpstreamsOption) *Upstreams {
	t.Helper()
	u, err := NewUpstreams("checkout", opts...)
	require.NoError(t, err)
	return u
}

// belongs returns where each of n ids belongs.
func belongs(t testing.TB, u *Upstreams, n int) []string {
	t.Helper()
	where := make([]string, n)
	for i := range where {
		node, err := u.Pick("user-" + strconv.Itoa(i))
		require.NoError(t, err)
		where[i] = node.Name()
	}
	return where
}

// loads counts ids by instance.
func loads(where []string) map[string]int {
	n := map[string]int{}
	for _, name := range where {
		n[name]++
	}
	return n
}

const ids = 50_000

func TestUpstreams_RendezvousBalance(t *testing.T) {
	for _, n := range []int{2, 10, 32} {
		got := loads(belongs(t, upstreamsOf(t, WithUpstreams(hosts(n)...)), ids))
		require.Len(t, got, n)
		mean := float64(ids) / float64(n)
		for name, k := range got {
			assert.InDelta(t, mean, k, 4.5*math.Sqrt(mean), name) // what chance alone would do
		}
	}
}

// Whoever comes takes from all, whoever goes leaves only his own; nobody else moves.
func TestUpstreams_RendezvousMovesTheMinimum(t *testing.T) {
	for _, weights := range []bool{false, true} {
		u := upstreamsOf(t, WithUpstreams(hosts(10)...))
		if weights {
			require.NoError(t, u.SetWeight("10.0.0.3:8080", 3))
		}
		before := belongs(t, u, ids)
		require.NoError(t, u.Add("10.0.0.11:8080", 1))
		with := belongs(t, u, ids)
		moved := 0
		for i := range before {
			if before[i] != with[i] {
				require.Equal(t, "10.0.0.11:8080", with[i])
				moved++
			}
		}
		share := 1.0 / 11
		if weights {
			share = 1.0 / 13
		}
		assert.InDelta(t, share, float64(moved)/ids, 0.003)
		require.NoError(t, u.Remove("10.0.0.11:8080"))
		assert.Equal(t, before, belongs(t, u, ids), "and back")
		require.NoError(t, u.Remove("10.0.0.3:8080"))
		for i, name := range belongs(t, u, ids) {
			if before[i] != "10.0.0.3:8080" {
				require.Equal(t, before[i], name)
			}
		}
	}
}

func TestUpstreams_RendezvousWeights(t *testing.T) {
	u := upstreamsOf(t, WithUpstream("a", 1), WithUpstream("b", 2), WithUpstream("c", 7), WithUpstream("none", 0))
	got := loads(belongs(t, u, ids))
	assert.InDelta(t, 0.1*ids, got["a"], 0.005*ids)
	assert.InDelta(t, 0.2*ids, got["b"], 0.005*ids)
	assert.InDelta(t, 0.7*ids, got["c"], 0.005*ids)
	assert.Zero(t, got["none"])

	before := belongs(t, u, ids)
	require.NoError(t, u.SetWeight("b", 4))
	for i, name := range belongs(t, u, ids) {
		if name != before[i] {
			require.Equal(t, "b", name, "who gets more takes from the others and gives nothing")
		}
	}
}

func TestUpstreams_MaglevBalance(t *testing.T) {
	const n = 100
	u := upstreamsOf(t, WithUpstreams(hosts(n)...))
	slots := map[uint16]int{}
	for _, i := range u.table.Load().maglev {
		slots[i]++
	}
	require.Len(t, slots, n)
	for i, k := range slots {
		assert.InDelta(t, float64(maglevSlots)/n, k, 1, "instance %d", i)
	}
	mean := float64(ids) / n
	for name, k := range loads(belongs(t, u, ids)) {
		assert.InDelta(t, mean, k, 4.5*math.Sqrt(mean), name)
	}
	require.NoError(t, u.SetWeight("10.0.0.7:8080", 5))
	assert.InDelta(t, 5.0/104, float64(loads(belongs(t, u, ids))["10.0.0.7:8080"])/ids, 0.003)
}

func TestUpstreams_MaglevMovesLittleMore(t *testing.T) {
	u := upstreamsOf(t, WithUpstreams(hosts(100)...))
	before := belongs(t, u, ids)
	require.NoError(t, u.Add("10.0.0.101:8080", 1))
	needless, moved := 0, 0
	for i, name := range belongs(t, u, ids) {
		if name != before[i] {
			moved++
			needless += count(name != "10.0.0.101:8080")
		}
	}
	t.Logf("the 101st: %.2f %% moved, %.2f %% needlessly", 100*float64(moved)/ids, 100*float64(needless)/ids)
	assert.Less(t, float64(needless)/ids, 0.01)
	require.NoError(t, u.Remove("10.0.0.101:8080"))
	require.Equal(t, before, belongs(t, u, ids))

	require.NoError(t, u.Remove("10.0.0.50:8080"))
	needless = 0
	for i, name := range belongs(t, u, ids) {
		needless += count(name != before[i] && before[i] != "10.0.0.50:8080")
	}
	t.Logf("one less: %.2f %% moved needlessly", 100*float64(needless)/ids)
	assert.Less(t, float64(needless)/ids, 0.01)
}

// In numbers of slots, for ten instances: what others have measured of the algorithm.
func TestUpstreams_MaglevOfTen(t *testing.T) {
	table := func(names []string) (slots []string) {
		nodes, share := []*Upstream{}, []float64{}
		for _, name := range names {
			nodes = append(nodes, &Upstream{name: name, seed: xxh64(name, 1)})
			share = append(share, 1/float64(len(names)))
		}
		for _, i := range newMaglev(nodes, share) {
			slots = append(slots, names[i])
		}
		return slots
	}
	ten, eleven := table(hosts(10)), table(hosts(11))
	needless := 0
	for i := range ten {
		needless += count(ten[i] != eleven[i] && eleven[i] != "10.0.0.11:8080")
	}
	t.Logf("the eleventh: %.2f %% of the slots moved needlessly", 100*float64(needless)/maglevSlots)
	assert.Less(t, float64(needless)/maglevSlots, 1.5*0.003)
}

// Without an id chance decides, and not the hash of nothing.
func TestUpstreams_WithoutAnID(t *testing.T) {
	for _, n := range []int{10, 100} {
		u := upstreamsOf(t, WithUpstreams(hosts(n)...))
		got := map[string]bool{}
		for range 100 * n {
			lease, err := u.Acquire("")
			require.NoError(t, err)
			got[lease.Upstream().Name()] = true
			lease.Done()
		}
		assert.Greater(t, len(got), n*9/10)
	}
}

// Who is down costs only its own ids their place, and they come back to it.
func TestUpstreams_DownAndDrained(t *testing.T) {
	for _, n := range []int{10, 100} {
		u := upstreamsOf(t, WithUpstreams(hosts(n)...))
		before := belongs(t, u, 20_000)
		name := "10.0.0.5:8080"
		require.NoError(t, u.MarkDown(name))
		elsewhere := map[string]bool{}
		for i, now := range belongs(t, u, 20_000) {
			require.NotEqual(t, name, now)
			if before[i] == name {
				elsewhere[now] = true
			} else {
				require.Equal(t, before[i], now)
			}
		}
		assert.Greater(t, len(elsewhere), 8, "spread over the others")
		require.NoError(t, u.MarkUp(name))
		require.Equal(t, before, belongs(t, u, 20_000))

		lease := leaseOn(t, u, name)
		require.NoError(t, u.Drain(name))
		assert.NotContains(t, belongs(t, u, 20_000), name)
		assert.EqualValues(t, 1, lease.Upstream().InFlight(), "what it has it keeps")
		lease.Done()
		require.NoError(t, u.Restore(name))
		require.Equal(t, before, belongs(t, u, 20_000))
	}
}

// leaseOn acquires with ever new ids until it gets the instance.
func leaseOn(t testing.TB, u *Upstreams, name string) *UpstreamLease {
	t.Helper()
	for i := range 100_000 {
		lease, err := u.Acquire("lease-" + strconv.Itoa(i))
		require.NoError(t, err)
		if lease.Upstream().Name() == name {
			return &lease
		}
		lease.Done()
	}
	t.Fatalf("nobody belongs to %s", name)
	return nil
}

// However the ids come, nobody has more than a quarter above the share of what is under
// way.
func TestUpstreams_BoundedLoad(t *testing.T) {
	for _, n := range []int{3, 10, 100} {
		u := upstreamsOf(t, WithUpstreams(hosts(n)...))
		require.NoError(t, u.SetWeight("10.0.0.2:8080", 2))
		rng := rand.New(rand.NewPCG(uint64(n), 13))
		busy := rand.NewZipf(rng, 1.5, 1, 1000) // one id has most of it
		var leases []UpstreamLease
		for i := range 5000 {
			if len(leases) > 0 && rng.IntN(3) == 0 {
				k := rng.IntN(len(leases))
				leases[k].Done()
				leases[k] = leases[len(leases)-1]
				leases = leases[:len(leases)-1]
				continue
			}
			lease, err := u.Acquire("user-" + strconv.FormatUint(busy.Uint64(), 10))
			require.NoError(t, err)
			leases = append(leases, lease)
			share := 1 / float64(n+1)
			if lease.Upstream().Name() == "10.0.0.2:8080" {
				share *= 2
			}
			if n < 100 { // a probe of the table may find none, and then the least loaded has it
				require.LessOrEqual(t, float64(lease.Upstream().InFlight()), math.Ceil(1.25*float64(len(leases))*share), "step %d", i)
			}
		}
		s := u.Snapshot()
		assert.EqualValues(t, len(leases), s.InFlight)
		var inFlight, spilled int64
		for _, one := range s.Upstreams {
			inFlight += one.InFlight
			spilled += one.Spilled
			assert.LessOrEqual(t, float64(one.InFlight), 1.25*2*float64(len(leases))/float64(n)+10, one.Name)
		}
		assert.EqualValues(t, len(leases), inFlight)
		assert.Positive(t, spilled)
		for i := range leases {
			leases[i].Done()
			leases[i].Done() // once is enough
		}
		assert.Zero(t, u.Snapshot().InFlight)
	}
}

// One busy id does not push others from where they belong.
func TestUpstreams_QuietIdsStay(t *testing.T) {
	u := upstreamsOf(t, WithUpstreams(hosts(10)...), WithLoadFactor(2))
	before := belongs(t, u, 1000)
	stayed := 0
	for i := range before {
		lease, err := u.Acquire("user-" + strconv.Itoa(i))
		require.NoError(t, err)
		stayed += count(lease.Upstream().Name() == before[i])
		lease.Done()
	}
	assert.Equal(t, 1000, stayed)
}

// The least loaded has it when nobody has a place, as when everything but one is down
// and that one is full.
func TestUpstreams_AllFull(t *testing.T) {
	u := upstreamsOf(t, WithUpstreams("a", "b", "c"))
	require.NoError(t, u.MarkDown("a"))
	require.NoError(t, u.MarkDown("b"))
	for range 10 {
		lease, err := u.Acquire("x")
		require.NoError(t, err)
		assert.Equal(t, "c", lease.Upstream().Name())
	}
	require.NoError(t, u.MarkUp("b"))
	lease, err := u.Acquire("x")
	require.NoError(t, err)
	assert.Equal(t, "b", lease.Upstream().Name())
}

func TestUpstreams_None(t *testing.T) {
	u := upstreamsOf(t)
	_, err := u.Pick("x")
	assert.ErrorIs(t, err, ErrNoUpstream)
	_, err = u.Acquire("x")
	assert.ErrorIs(t, err, ErrNoUpstream)
	assert.ErrorIs(t, err, sluice.ErrRejected)
	assert.EqualError(t, err, `upstreams "checkout": none is up and has a weight`)
	var refused sluice.Rejection
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, []string{"checkout", "upstreams", "none"}, []string{refused.Resource(), refused.Policy(), refused.Reason()})
	assert.Zero(t, refused.RetryAfter())
	assert.Zero(t, u.Snapshot().InFlight)
	assert.EqualValues(t, 1, u.Snapshot().Refused)

	j := started(t, Percent(10))
	j.ObserveError(t.Context(), split(0, Percent(10)), err, 0)
	assert.EqualValues(t, 1, j.verdict(1).CanarySeen.Refused, "the version's users see that")
}

func TestUpstreams_Nil(t *testing.T) {
	var u *Upstreams
	lease, err := u.Acquire("x")
	require.NoError(t, err)
	assert.Empty(t, lease.Upstream().Name())
	assert.Zero(t, lease.Upstream().InFlight())
	lease.Done()
	_, err = u.Pick("x")
	require.NoError(t, err)
	for _, err := range []error{u.Add("a", 1), u.Remove("a"), u.SetWeight("a", 1), u.Drain("a"), u.Restore("a"), u.MarkDown("a"), u.MarkUp("a"), u.Update(DefaultUpstreamsConfig())} {
		require.NoError(t, err)
	}
	assert.Zero(t, u.Snapshot())
	assert.Zero(t, u.Config())
	assert.Empty(t, u.Name())
	u.Collect(nil)
}

func TestUpstreams_Changes(t *testing.T) {
	u := upstreamsOf(t, WithUpstreams("a", "b"))
	for want, err := range map[string]error{
		`Upstreams[2].Name "a" stands there twice`:                   u.Add("a", 1),
		"Upstreams[2].Name is empty":                                 u.Add("", 1),
		"Upstreams[2].Weight -1 is not in [0, 1000]":                 u.Add("c", -1),
		`upstreams "checkout": canary: unknown upstream "x"`:         u.Remove("x"),
		`unknown upstream "y"`:                                       u.Drain("y"),
		"Upstreams[0].Weight 1001":                                   u.SetWeight("a", 1001),
		"LoadFactor NaN is not in [1.01, 1000]":                      u.Update(UpstreamsConfig{LoadFactor: math.NaN()}),
		"1025 Upstreams are more than 1024":                          u.Update(UpstreamsConfig{LoadFactor: 2, Upstreams: make([]UpstreamConfig, 1025)}),
		"Upstreams[0].Name \"a\\n\" has control characters or is no": u.Update(UpstreamsConfig{LoadFactor: 2, Upstreams: []UpstreamConfig{{"a\n", 1}}}),
	} {
		assert.ErrorContains(t, err, want)
	}
	assert.ErrorIs(t, u.MarkUp("x"), ErrUnknownUpstream)
	assert.Equal(t, UpstreamsConfig{1.25, []UpstreamConfig{{"a", 1}, {"b", 1}}}, u.Config(), "nothing has changed")

	lease := leaseOn(t, u, "a")
	require.NoError(t, u.Drain("b"))
	require.NoError(t, u.Update(UpstreamsConfig{1.5, []UpstreamConfig{{"b", 2}, {"c", 3}}}))
	s := u.Snapshot()
	assert.EqualValues(t, 1, s.InFlight)
	assert.EqualValues(t, 1.5, s.LoadFactor)
	assert.True(t, s.Upstreams[0].Drained, "as before")
	assert.EqualValues(t, 1, lease.Upstream().InFlight())
	lease.Done()
	assert.Nil(t, lease.Upstream())
	assert.Zero(t, u.Snapshot().InFlight)

	leases := s.Upstreams[0].Leases
	require.NoError(t, u.Remove("b"))
	require.NoError(t, u.Add("b", 1))
	s = u.Snapshot()
	assert.Equal(t, leases, s.Upstreams[1].Leases, "what it counts goes on")
	assert.False(t, s.Upstreams[1].Drained, "but it is a new one")

	_, err := NewUpstreams("", nil, WithLoadFactor(1))
	for _, want := range []string{"the name of the upstreams is empty", "option 0 is nil", "LoadFactor 1 is not"} {
		assert.ErrorContains(t, err, want)
	}
}

func TestUpstreams_JSON(t *testing.T) {
	c := UpstreamsConfig{LoadFactor: 2, Upstreams: []UpstreamConfig{{"old", 1}}}
	require.NoError(t, json.Unmarshal([]byte(`{"upstreams":[{"name":"a"},{"name":"b","weight":0}]}`), &c))
	assert.Equal(t, UpstreamsConfig{2, []UpstreamConfig{{"a", 1}, {"b", 0}}}, c)
	data, err := json.Marshal(c)
	require.NoError(t, err)
	assert.JSONEq(t, `{"load_factor":2,"upstreams":[{"name":"a","weight":1},{"name":"b","weight":0}]}`, string(data))
	require.NoError(t, json.Unmarshal([]byte(`{"load_factor":3}`), &c))
	assert.Len(t, c.Upstreams, 2)
	assert.Error(t, json.Unmarshal([]byte(`{"factor":3}`), &c))
	assert.Error(t, json.Unmarshal([]byte(`{"upstreams":[{"nam":"a"}]}`), &c))
	data, err = json.Marshal(DefaultUpstreamsConfig())
	require.NoError(t, err)
	assert.JSONEq(t, `{"load_factor":1.25,"upstreams":[]}`, string(data))

	u := upstreamsOf(t, WithUpstreamsConfig(UpstreamsConfig{2, []UpstreamConfig{{"a", 1}}}), WithUpstream("b", 3))
	assert.Equal(t, UpstreamsConfig{2, []UpstreamConfig{{"a", 1}, {"b", 3}}}, u.Config())
}

// What comes must go, whatever changes meanwhile.
func TestUpstreams_Conserves(t *testing.T) {
	u := upstreamsOf(t, WithUpstreams(hosts(40)...))
	var all sync.WaitGroup
	for c := range 4 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c), 14))
			for range runs(5000) {
				lease, err := u.Acquire(strconv.Itoa(rng.IntN(100)))
				if assert.NoError(t, err) {
					lease.Done()
				}
			}
		})
	}
	all.Go(func() {
		for i := range 30 { // back and forth over the border between ranks and table
			name := hosts(40)[i%10]
			assert.NoError(t, u.MarkDown(name))
			assert.NoError(t, u.Remove(name))
			assert.NoError(t, u.Add(name, 1+i%3))
			assert.NoError(t, u.Drain(hosts(40)[20+i%20]))
			if i%3 == 0 {
				assert.NoError(t, u.Restore(hosts(40)[20+i%20]))
			}
		}
	})
	all.Wait()
	s := u.Snapshot()
	assert.Zero(t, s.InFlight)
	var leases int64
	for _, n := range s.Upstreams {
		assert.Zero(t, n.InFlight, n.Name)
		leases += n.Leases
	}
	assert.EqualValues(t, 4*runs(5000), leases)
}

func TestUpstreams_AllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("needs a build without -race, which allocates")
	}
	full := upstreamsOf(t, WithUpstreams("a", "b", "c"))
	require.NoError(t, full.MarkDown("a"))
	down := upstreamsOf(t, WithUpstreams(hosts(100)...))
	for _, name := range hosts(100)[:90] {
		require.NoError(t, down.MarkDown(name))
	}
	weighted := upstreamsOf(t, WithUpstream("a", 1), WithUpstream("b", 2))
	for name, u := range map[string]*Upstreams{
		"ranked": upstreamsOf(t, WithUpstreams(hosts(10)...)), "table": upstreamsOf(t, WithUpstreams(hosts(100)...)),
		"weighted": weighted, "elsewhere": full, "probing": down, "none": upstreamsOf(t), "nil": nil,
	} {
		id := 0
		names := []string{"user-1", "user-2", "user-3", "user-4", "user-5"}
		assert.Zero(t, testing.AllocsPerRun(500, func() {
			id++
			lease, _ := u.Acquire(names[id%5])
			lease.Done()
			_, _ = u.Pick(names[id%5])
		}), name)
	}
}

// The obvious program: all draws of all instances, sorted.
func FuzzUpstreamsRank(f *testing.F) {
	f.Add("user-1", uint8(5), uint8(1))
	f.Add("", uint8(32), uint8(7))
	f.Fuzz(func(t *testing.T, id string, n, weight uint8) {
		size := int(n)%rankedAtMost + 1
		u := upstreamsOf(t, WithUpstreams(hosts(size)...))
		if err := u.SetWeight(hosts(size)[0], int(weight)+1); err != nil {
			t.Fatal(err)
		}
		table, h := u.table.Load(), xxh64(id, u.seed)
		order := []int{table.first(h)}
		for i := range table.others(h) {
			order = append(order, i)
		}
		want := make([]int, size)
		for i := range want {
			want[i] = i
		}
		slices.SortStableFunc(want, func(a, b int) int {
			draw := func(i int) float64 {
				x := float64(scramble(h^table.nodes[i].seed)>>11) + 0.5
				w := 1.0
				if i == slices.IndexFunc(table.nodes, func(n *Upstream) bool { return n.name == hosts(size)[0] }) {
					w = float64(weight) + 1
				}
				return w / -math.Log(x/(1<<53))
			}
			return -compare(draw(a), draw(b))
		})
		if !slices.Equal(order, want) {
			t.Fatalf("%q over %d: %v, want %v", id, size, order, want)
		}
	})
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// What one that is down may not have is shared by the others: they are not full, and their
// ids stay where they belong.
func TestUpstreams_OneDownTakesNoIDsFromOthers(t *testing.T) {
	for _, n := range []int{2, 3, 4, 40} {
		u := sluice.Must(NewUpstreams("v2"))
		for i := range n {
			require.NoError(t, u.Add("10.0.0."+strconv.Itoa(i), 1))
		}
		require.NoError(t, u.MarkDown("10.0.0.0"))
		away, homes := 0, 0
		for i := range 400 * n {
			id := "user-" + strconv.Itoa(i)
			home := u.table.Load().nodes[u.table.Load().first(u.hash(id))]
			lease, err := u.Acquire(id) // and it is never given back
			require.NoError(t, err)
			if home.name != "10.0.0.0" {
				homes++
				if lease.Upstream() != home {
					away++
				}
			}
		}
		assert.Less(t, float64(away), 0.05*float64(homes), "of %d instances", n)
		require.NoError(t, u.MarkUp("10.0.0.0"))
		assert.Equal(t, 1.0, u.table.Load().up)
	}
}

// Whoever has a weight has a place, however little that is beside the others.
func TestUpstreams_NobodyStarves(t *testing.T) {
	u := sluice.Must(NewUpstreams("v2"))
	for i := range 200 {
		require.NoError(t, u.Add("10.0.0."+strconv.Itoa(i), 1000))
	}
	require.NoError(t, u.SetWeight("10.0.0.7", 1))
	slots := map[string]int{}
	table := u.table.Load()
	for _, i := range table.maglev {
		slots[table.nodes[i].name]++
	}
	assert.Len(t, slots, 200)
	assert.Equal(t, 1, slots["10.0.0.7"])
}
