package ratelimit

import (
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/metrics"
)

// KeyedSnapshot is what a Keyed looks like at one moment, as plain data. Its numbers are
// read one after another while calls go on, so they need not add up to the call.
type KeyedSnapshot struct {
	Name string `json:"name"`
	// Rate and Burst are those of keys of no class.
	Rate     Rate         `json:"rate"`
	Burst    int64        `json:"burst"`
	Classes  []KeyClass   `json:"classes,omitempty"`
	WhenFull WhenFull     `json:"when_full"`
	Keys     KeysSnapshot `json:"keys"`

	Totals  TotalsSnapshot  `json:"totals"`
	Refused RefusedSnapshot `json:"refused"`
	// Top are the keys that are refused most, if they are kept track of; see HotKey.
	Top []HotKey `json:"top,omitempty"`
}

// KeysSnapshot is what the table of a Keyed holds, and what has happened to it since it
// was made.
type KeysSnapshot struct {
	// Slots is how many keys the table can hold at the very most; it is made for four
	// fifths. Held is how many it holds, those that are full again included.
	Slots int64 `json:"slots"`
	Held  int64 `json:"held"`
	// Settled is how many keys came that were not there.
	Settled int64 `json:"settled"`
	// Evicted is how many of these took the slot of a key whose bucket was not full, and
	// which may have up to one burst more for it.
	Evicted int64 `json:"evicted"`
	// Denied is how many answers were a refusal for want of a slot; Shared how many came
	// from the bucket that keys without a slot share.
	Denied int64 `json:"denied"`
	Shared int64 `json:"shared"`
}

// topShown is how many hot keys a snapshot has.
const topShown = 20

// Snapshot returns what the Keyed looks like now, all classes together. It has no side
// effect and does not disturb calls, but it allocates.
func (k *Keyed) Snapshot() KeyedSnapshot {
	if k == nil {
		return KeyedSnapshot{Rate: Unlimited(), WhenFull: EvictLeastDebt}
	}
	ks := k.space
	c := ks.config.Load().Clone()
	limit := c.limitOf("")
	s := KeyedSnapshot{Name: ks.name, Rate: c.Rate, Classes: c.Classes, WhenFull: c.WhenFull, Keys: ks.tally.keys()}
	if bounded(c.Rate) {
		s.Burst = limit.burst()
	}
	s.Keys.Slots = int64(len(ks.table.sets)) * keyWays
	s.Totals, s.Refused = ks.tally.answers.totals()
	s.Top = k.TopRejected(topShown)
	return s
}

// TopRejected returns the n keys that are refused most lately, the most refused first.
// It is empty unless WithTopRejected is used.
func (k *Keyed) TopRejected(n int) []HotKey {
	if k == nil {
		return nil
	}
	return k.space.top.top(n, clock.Now())
}

var (
	descKeysHeld    = metrics.Desc{Name: "ratelimit_keys", Help: "Slots of the table of keys that hold one, those with a full bucket included.", Unit: "{key}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descKeySlots    = metrics.Desc{Name: "ratelimit_key_slots", Help: "Slots of the table of keys.", Unit: "{slot}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descKeysSettled = metrics.Desc{Name: "ratelimit_keys_settled", Help: "Keys that got a slot.", Unit: "{key}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descKeysEvicted = metrics.Desc{Name: "ratelimit_keys_evicted", Help: "Keys that lost their slot before their bucket was full.", Unit: "{key}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descKeysShared  = metrics.Desc{Name: "ratelimit_keys_shared", Help: "Answers from the bucket that keys without a slot share.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
)

// Collect yields the figures of all classes together, for metrics.Set. Counters never go
// down. Keys are no labels: see TopRejected.
func (k *Keyed) Collect(yield func(metrics.Sample) bool) {
	if k == nil {
		return
	}
	s := k.Snapshot()
	answered := []string{s.Name, k.space.policy}
	refused := func(reason string) []string { return []string{s.Name, k.space.policy, reason} }
	table := answered[:1]
	for _, m := range []struct {
		desc   *metrics.Desc
		labels []string
		value  int64
	}{
		{&descAdmitted, answered, s.Totals.Admitted},
		{&descTokens, answered, s.Totals.Tokens},
		{&descRefunded, answered, s.Totals.Refunded},
		{&descRefused, refused(ReasonLimited), s.Refused.Limited},
		{&descRefused, refused(ReasonExceedsCapacity), s.Refused.ExceedsCapacity},
		{&descRefused, refused(ReasonBlocked), s.Refused.Blocked},
		{&descRefused, refused(ReasonInvalid), s.Refused.Invalid},
		{&descRefused, refused(ReasonTooManyKeys), s.Keys.Denied},
		{&descKeysHeld, table, s.Keys.Held},
		{&descKeySlots, table, s.Keys.Slots},
		{&descKeysSettled, table, s.Keys.Settled},
		{&descKeysEvicted, table, s.Keys.Evicted},
		{&descKeysShared, table, s.Keys.Shared},
	} {
		if !yield(metrics.Sample{Desc: m.desc, Labels: m.labels, Value: float64(m.value)}) {
			return
		}
	}
}

// View returns the Snapshot, for metrics.Set.
func (k *Keyed) View() any { return k.Snapshot() }
