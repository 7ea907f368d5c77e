package ratelimit

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// SharedSnapshot is what a Shared limiter looks like at one moment, as plain data. Its
// numbers are read one after another while calls go on, so they need not add up to
// the call.
type SharedSnapshot struct {
	Name string `json:"name"`
	// Key is the limiter's in its SharedGroup, "" if it is in none.
	Key       string    `json:"key,omitempty"`
	Threshold Threshold `json:"threshold"`
	// Rate and Burst are those of all nodes together; of this one if PerNode.
	Rate  Rate  `json:"rate"`
	Burst int64 `json:"burst"`
	// LocalRate and LocalBurst are those of this node alone, when the store does not
	// answer.
	LocalRate  Rate  `json:"local_rate"`
	LocalBurst int64 `json:"local_burst"`

	// Lease is how many tokens this node means to hold, Held how many it does, and
	// Remaining how many the store had left when it was asked last.
	Lease     int64 `json:"lease"`
	Held      int64 `json:"held"`
	Remaining int64 `json:"remaining"`
	// RetryAt is until when the store's last refusal is repeated without asking.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Owed is how many tokens were given out that the store has not been told of.
	Owed int64 `json:"owed"`
	// Waiting callers have been promised their tokens.
	Waiting int64 `json:"waiting"`

	Node NodeSnapshot `json:"node"`
}

// NodeSnapshot is a process's part in a shared limit: of a Shared, or of all keys of
// a SharedGroup.
type NodeSnapshot struct {
	// ID is this node's name among the Nodes.
	ID    string `json:"id"`
	Nodes int64  `json:"nodes"`
	// Running says that Run does.
	Running bool `json:"running"`

	Mode  Mode      `json:"mode"`
	Since time.Time `json:"since"`
	// Cause is what the store failed with, and RetryAt when it is tried again, in
	// ModeFallback.
	Cause   string    `json:"cause,omitempty"`
	RetryAt time.Time `json:"retry_at,omitzero"`

	Totals  TotalsSnapshot  `json:"totals"`
	Refused RefusedSnapshot `json:"refused"`
	// Unavailable is how many calls were refused because the store did not answer.
	Unavailable int64         `json:"unavailable"`
	Store       StoreSnapshot `json:"store"`

	// Dropped events did not reach the listeners; Panics of listeners were caught.
	Dropped uint64 `json:"events_dropped"`
	Panics  int64  `json:"listener_panics"`
}

// StoreSnapshot counts what a node had to do with the store; the numbers never go
// down.
type StoreSnapshot struct {
	Takes   int64 `json:"takes"`
	Refunds int64 `json:"refunds"`
	Debits  int64 `json:"debits"`
	Beats   int64 `json:"beats"`
	// Tries are calls that only find out whether the store answers again.
	Tries int64 `json:"tries"`
	// Failures and Rejected are calls of those above that failed, and that the guard did
	// not make.
	Failures int64 `json:"failures"`
	Rejected int64 `json:"rejected"`
	// Waited are takes that a caller waited for, and Denials those that the store
	// refused. What was refused for want of tokens beyond these was refused from memory.
	Waited  int64 `json:"waited"`
	Denials int64 `json:"denials"`
	// Fallback are decisions without the store, Fallbacks stays in ModeFallback, and
	// FallbackFor how long they took, up to now.
	Fallback    int64         `json:"fallback"`
	Fallbacks   int64         `json:"fallbacks"`
	FallbackFor time.Duration `json:"fallback_for"`
	// Lost tokens could not be given back.
	Lost int64 `json:"lost"`
}

// Snapshot returns what the limiter looks like now. It has no side effect and does not
// disturb calls, but it allocates.
func (s *Shared) Snapshot() SharedSnapshot {
	if s == nil {
		return SharedSnapshot{}
	}
	now := clock.Now()
	snap := s.account.snapshot(now)
	snap.Waiting = s.waiting.Load()
	snap.Node = s.node.snapshot(now)
	return snap
}

func (a *account) snapshot(now int64) SharedSnapshot {
	t := a.current()
	local := t.local
	s := SharedSnapshot{
		Name: a.node.name, Key: a.key.Key, Threshold: t.config.Threshold, Rate: t.quota.Rate, Burst: t.quota.Burst,
		LocalRate: local.Rate, LocalBurst: local.burst(),
		Held: a.balance.Load(), Remaining: a.known.Load(), Owed: a.unpaid.Load() + a.debts.Load(),
	}
	if !t.asks {
		s.Rate, s.Burst = s.LocalRate, s.LocalBurst
	}
	if d := a.denied.Load(); d != nil && d.terms == t && now < d.until {
		s.RetryAt = clock.Wall(d.until)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.Lease = a.ledger.lease
	return s
}

func (n *node) snapshot(now int64) NodeSnapshot {
	st, x := n.cur.Load(), &n.stats
	s := NodeSnapshot{
		ID: n.id, Nodes: n.count.Load(), Running: n.running.Load(), Mode: st.mode, Since: clock.Wall(st.since),
		Unavailable: x.unavailable.Load(), Dropped: n.events.Dropped(), Panics: x.panics.Load(),
		Store: StoreSnapshot{
			Takes: x.takes.Load(), Refunds: x.refunds.Load(), Debits: x.debits.Load(), Beats: x.beats.Load(), Tries: x.tries.Load(),
			Failures: x.failures.Load(), Rejected: x.rejected.Load(), Waited: x.onPath.Load(), Denials: x.denials.Load(),
			Fallback: x.fallback.Load(), Fallbacks: x.fallbacks.Load(), FallbackFor: time.Duration(x.fallbackNanos.Load()),
			Lost: x.lost.Load(),
		},
	}
	s.Totals, s.Refused = n.tally.totals()
	if st.mode == ModeFallback {
		s.Cause, s.RetryAt = st.cause.Error(), clock.Wall(st.until.Load())
		s.Store.FallbackFor += time.Duration(now - st.since)
	}
	return s
}
