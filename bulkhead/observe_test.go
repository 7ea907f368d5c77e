package bulkhead

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/metrics"
)

// collected returns the samples of a source by name and labels.
func collected(t *testing.T, source metrics.Source) map[string]float64 {
	t.Helper()
	var set metrics.Set
	require.NoError(t, set.Add("it", source))
	got := map[string]float64{}
	set.Collect(func(s metrics.Sample) bool {
		require.NoError(t, s.Desc.Validate())
		got[strings.Join(append([]string{s.Desc.Name}, s.Labels...), " ")] = s.Value
		return true
	})
	assert.Zero(t, got["source_faults"])
	delete(got, "source_faults") // of the Set itself
	return got
}

// stops checks that Collect stops when it is told to, wherever that is.
func stops(t *testing.T, source metrics.Source, samples int) {
	t.Helper()
	for most := range samples {
		n := 0
		source.Collect(func(metrics.Sample) bool { n++; return n <= most })
		assert.Equal(t, most+1, n)
	}
}

func TestBulkhead_Collect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 2, WithQueue(1, time.Second))
		free := fill(t, b, 2)
		go func() { _, _ = b.Acquire(t.Context()) }()
		synctest.Wait()
		_, _ = b.Acquire(t.Context())
		_, _ = b.TryAcquire(t.Context())
		_, _ = b.TryAcquireN(t.Context(), 3)
		assert.Equal(t, map[string]float64{
			"bulkhead_limit payments": 2, "bulkhead_in_flight payments": 2, "bulkhead_waiting payments": 1,
			"bulkhead_admissions payments": 2, "bulkhead_waits payments": 0, "bulkhead_wait_seconds payments": 0,
			"bulkhead_abandoned payments": 0, "rejected payments bulkhead full": 1, "rejected payments bulkhead queue_full": 1,
			"rejected payments bulkhead max_wait": 0, "rejected payments bulkhead exceeds_capacity": 1, "rejected payments bulkhead closed": 0,
		}, collected(t, b))
		time.Sleep(500 * time.Millisecond)
		free()
		synctest.Wait()
		got := collected(t, b)
		assert.InDelta(t, 0.5, got["bulkhead_wait_seconds payments"], 0)
		assert.InDelta(t, 1, got["bulkhead_waits payments"], 0)
		stops(t, b, len(got))
		assert.Equal(t, b.Snapshot(), b.View())
	})
}

func TestSnapshot_JSON(t *testing.T) {
	b := build(t, 3)
	fill(t, b, 3)
	_, _ = b.Acquire(t.Context())
	data, err := json.Marshal(b.Snapshot())
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"name": "payments", "limit": 3, "in_flight": 3, "waiting": 0, "max_queue": 0, "overload": false,
		"totals": {"admitted": 3, "waited": 0, "wait_time": 0, "gave_up": 0},
		"refused": {"full": 1, "queue_full": 0, "max_wait": 0, "exceeds_capacity": 0, "closed": 0}
	}`, string(data))
}

func TestPool_Collect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1, WithPoolQueue(1))
		submit(t, p, time.Second)
		submit(t, p, time.Second)
		_ = p.Do(t.Context(), nothing)
		assert.Equal(t, map[string]float64{
			"pool_workers mail busy": 1, "pool_workers mail idle": 0, "pool_queued mail": 1, "pool_tasks mail done": 0,
			"pool_tasks mail panicked": 0, "pool_tasks mail exited": 0, "pool_tasks mail abandoned": 0, "pool_waits mail": 0,
			"pool_wait_seconds mail": 0, "rejected mail pool full": 0, "rejected mail pool queue_full": 1, "rejected mail pool closed": 0,
		}, collected(t, p))
		time.Sleep(3 * time.Second)
		got := collected(t, p)
		for sample, want := range map[string]float64{
			"pool_workers mail idle": 1, "pool_tasks mail done": 2, "pool_waits mail": 1, "pool_wait_seconds mail": 1,
		} {
			assert.InDelta(t, want, got[sample], 0, sample)
		}
		stops(t, p, len(got))
		data, err := json.Marshal(p.View())
		require.NoError(t, err)
		assert.JSONEq(t, `{
			"name": "mail", "workers": 1, "max_workers": 1, "busy": 0, "queued": 0, "max_queue": 1, "closed": false,
			"totals": {"done": 2, "panicked": 0, "exited": 0, "waited": 1, "wait_time": 1000000000, "gave_up": 0},
			"refused": {"full": 0, "queue_full": 1, "max_wait": 0, "exceeds_capacity": 0, "closed": 0}
		}`, string(data))
	})
}

func TestGroup_Collect(t *testing.T) {
	g := newGroup(t, 1)
	require.NoError(t, g.Get("a").Do(t.Context(), nothing))
	got := collected(t, g)
	for sample, want := range map[string]float64{
		"bulkhead_admissions upstream/a": 1, "bulkhead_limit upstream/_overflow": 1, "group_keys upstream": 1, "group_overflows upstream": 0,
	} {
		value, ok := got[sample]
		assert.True(t, ok, sample)
		assert.InDelta(t, want, value, 0, sample)
	}
	stops(t, g, len(got))
	assert.Equal(t, map[string]Snapshot{"a": g.Get("a").Snapshot()}, g.View())
}
