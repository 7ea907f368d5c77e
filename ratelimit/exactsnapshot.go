package ratelimit

import (
	"maps"
	"slices"

	"github.com/sluicego/sluice/metrics"
)

// KeyedExactSnapshot is what a KeyedExact looks like at one moment, as plain data.
type KeyedExactSnapshot struct {
	Name string `json:"name"`
	// Keys has what each key that is held looks like, by its name. What is counted begins
	// at zero when a key that was let go comes again.
	Keys map[string]Snapshot `json:"keys"`
	// Overflow is the limiter that keys share for which there is no room, and Overflows
	// how often it was given out.
	Overflow  Snapshot `json:"overflow"`
	Overflows int64    `json:"overflows"`
}

// Snapshot returns what the keys look like now. It does not disturb calls, but it
// allocates.
func (k *KeyedExact) Snapshot() KeyedExactSnapshot {
	if k == nil {
		return KeyedExactSnapshot{}
	}
	s := KeyedExactSnapshot{Name: k.name, Keys: map[string]Snapshot{}, Overflow: k.overflow.Snapshot(), Overflows: k.overflows.Load()}
	for key, e := range k.members.All() {
		s.Keys[key] = e.Snapshot()
	}
	return s
}

// Collect yields the figures of each key that is held, for metrics.Set, by the name of the
// KeyedExact and its own, such as "tenants/acme". Those of a key that was let go and comes
// again begin at zero, as after a restart.
func (k *KeyedExact) Collect(yield func(metrics.Sample) bool) {
	if k == nil {
		return
	}
	more := true
	counted := func(s metrics.Sample) bool { more = yield(s); return more }
	held := maps.Collect(k.members.All())
	for _, key := range slices.Sorted(maps.Keys(held)) {
		if held[key].Collect(counted); !more {
			return
		}
	}
	if k.overflow.Collect(counted); !more {
		return
	}
	_ = yield(metrics.Sample{Desc: &descGroupKeys, Labels: []string{k.name}, Value: float64(len(held))}) &&
		yield(metrics.Sample{Desc: &descGroupOverflows, Labels: []string{k.name}, Value: float64(k.overflows.Load())})
}

// View returns the Snapshot, for metrics.Set.
func (k *KeyedExact) View() any { return k.Snapshot() }
