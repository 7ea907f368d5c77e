package canary

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/metrics"
)

// SetWeights under full load: no pick waits, is lost, or sees some of the new weights
// and some of the old ones. The two weights swap, so together they are always 60 %.
func TestSetWeights_UnderLoad(t *testing.T) {
	p := pickerOf(t, 500_000, 100_000)
	var stop atomic.Bool
	var picks [4]int64
	var callers sync.WaitGroup
	for i := range picks {
		callers.Go(func() {
			for n := 0; !stop.Load() || n < 1000; n++ {
				d := p.Decide(Input{ID: fmt.Sprint(i, "-", n)})
				picks[i]++
				// In odd generations c0 has 50 % and c1 10 %, in even ones the other way round.
				lower, upper := uint32(500_000), uint32(900_000)
				if d.Generation%2 == 0 {
					lower, upper = 100_000, 500_000
				}
				want := "stable"
				if d.Point < lower {
					want = "c0"
				} else if d.Point >= upper {
					want = "c1"
				}
				if d.Version.Name() != want {
					t.Errorf("generation %d, point %d: %v, want %s", d.Generation, d.Point, d.Version, want)
				}
			}
		})
	}
	for range runs(2000) {
		require.NoError(t, p.SetWeights(weightsOf(100_000, 500_000)))
		require.NoError(t, p.SetWeights(weightsOf(500_000, 100_000)))
	}
	stop.Store(true)
	callers.Wait()
	var made, counted int64
	for _, n := range picks {
		made += n
	}
	for _, v := range p.Snapshot().Versions {
		counted += v.Requests["split"]
	}
	assert.Equal(t, made, counted, "every pick is counted once")
}

// After Rollback has returned, nobody who begins a pick gets the version, whatever they
// ask for.
func TestRollback_NoPickAfterItReturns(t *testing.T) {
	for range runs(300) {
		p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(90))))
		bad := p.Version("v2")
		var over atomic.Bool
		var callers sync.WaitGroup
		for i := range 3 {
			callers.Go(func() {
				for n := range 200 {
					returned := over.Load() // before the pick begins
					id := fmt.Sprint(i, "-", n)
					for _, v := range []*Version{
						p.Pick(id), p.PickRandom(), p.Decide(Input{ID: id, Sticky: "v2"}).Version,
						p.Decide(Input{Override: "v2", Authorized: true, Target: "v2"}).Version,
					} {
						if returned && v == bad {
							t.Error("a pick that began after Rollback had returned got the version")
						}
					}
				}
			})
		}
		callers.Go(func() {
			assert.NoError(t, p.Rollback("v2", "errors"))
			over.Store(true)
		})
		callers.Go(func() {
			for range 20 { // others who do not know
				_ = p.SetWeights(map[string]Weight{"v2": Percent(50)})
			}
		})
		callers.Wait()
		require.Equal(t, Weight(0), p.Share("v2"))
	}
}

// Enter and Leave by many goroutines add up, and a look in between never misses one
// that is under way throughout.
func TestInFlight_Conservation(t *testing.T) {
	v := pickerOf(t).Stable()
	v.Enter() // stays under way
	var stop atomic.Bool
	var callers, looker sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range runs(20_000) {
				v.Enter()
				var other sync.WaitGroup
				if testing.Short() {
					v.Leave()
					continue
				}
				other.Go(v.Leave) // another goroutine, and so another stripe
				other.Wait()
			}
		})
	}
	looker.Go(func() {
		for !stop.Load() {
			if n := v.InFlight(); n < 1 {
				t.Errorf("%d under way, and one always was", n)
				return
			}
		}
	})
	callers.Wait()
	stop.Store(true)
	looker.Wait()
	assert.Equal(t, int64(1), v.InFlight())
}

// Everything at once: generations only grow, and events come in their order.
func TestPicker_Race(t *testing.T) {
	var last atomic.Uint64
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(10)), WithVersion("v3", 1, Percent(10)),
		WithOnChange(func(c Change) {
			if before := last.Swap(c.Generation); before >= c.Generation {
				t.Errorf("generation %d after %d", c.Generation, before)
			}
		})))
	replica := sluice.Must(New("shop", "v1"))
	var all sync.WaitGroup
	do := func(f func(i int)) {
		all.Go(func() {
			for i := range runs(300) {
				f(i)
			}
		})
	}
	do(func(i int) { _ = p.SetWeights(map[string]Weight{"v2": PPM(i * 100), "v3": PPM(1000)}) })
	do(func(int) { _ = p.Rollback("v2", "x"); _ = p.Readmit("v2") })
	do(func(int) { _ = p.RollbackOver("v3", "x", time.Microsecond); _ = p.Readmit("v3") })
	do(func(int) { _ = p.Drain("v3", time.Millisecond); _ = p.Kill("x"); _ = p.Revive() })
	do(func(int) { _ = replica.Apply(p.Plan()) })
	do(func(i int) {
		c := p.Config()
		if i%2 == 0 {
			c.Versions = append(c.Versions, VersionConfig{fmt.Sprint("w", i), 5, 0})
		} else if len(c.Versions) > 2 {
			c.Versions = c.Versions[:2]
		}
		_ = p.Update(c)
	})
	do(func(i int) {
		v := p.Decide(Input{ID: fmt.Sprint(i), Sticky: "v3"}).Version
		v.Enter()
		defer v.Leave()
		_, err := p.Preview(map[string]Weight{"v1": Percent(3)})
		assert.Error(t, err)
		p.Snapshot()
		p.Collect(func(metrics.Sample) bool { return true })
	})
	all.Wait()
	require.NoError(t, p.Plan().Validate())
	require.NoError(t, replica.Apply(p.Plan()))
	assert.Equal(t, p.Generation(), replica.Generation())
	for _, v := range append(p.Retired(), p.Stable()) {
		assert.Zero(t, v.InFlight())
	}
}
