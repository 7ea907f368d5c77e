package breaker

import (
	"fmt"
	"sync"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// LocalBudget is a ProbeBudget within one process, for several breakers that
// guard the same resource by the same name: at most so many probes for each
// resource at a time. A probe that fails keeps its place until its lease is over,
// so that all breakers together, and not each of them, probe a sick dependency so
// often; one that ends otherwise frees its place at once.
//
// It takes a mutex for a few instructions. It remembers a resource only while
// leases on it run. It is safe for concurrent use and must not be copied; make one
// with NewLocalBudget.
type LocalBudget struct {
	most int

	mu     sync.Mutex // guards what follows; no foreign code runs under it
	fence  uint64     // the last one given
	leases map[string][]lease
	sweep  int // how many resources there may be before those with no lease are dropped
}

type lease struct {
	fence uint64
	until int64
}

// NewLocalBudget returns a budget of most probes at a time for each resource, at
// least 1.
func NewLocalBudget(most int) (*LocalBudget, error) {
	if most < 1 {
		return nil, fmt.Errorf("breaker: LocalBudget of %d is not positive", most)
	}
	return &LocalBudget{most: most, leases: make(map[string][]lease), sweep: 16}, nil
}

// Take gives leave if fewer than the most probes are out.
func (l *LocalBudget) Take(resource string, d time.Duration) (fence uint64, ok bool) {
	return l.take(clock.Now(), resource, d)
}

// Settle frees the place of the probe unless it failed.
func (l *LocalBudget) Settle(resource string, fence uint64, o sluice.Outcome) {
	if o == sluice.Failure {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(resource, func(have lease) bool { return have.fence != fence })
}

func (l *LocalBudget) take(now int64, resource string, d time.Duration) (fence uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	running := func(have lease) bool { return now < have.until }
	if len(l.leases) >= l.sweep {
		for name := range l.leases {
			l.keep(name, running)
		}
		l.sweep = max(16, 2*len(l.leases))
	}
	l.keep(resource, running)
	if len(l.leases[resource]) >= l.most {
		return 0, false
	}
	l.fence++
	l.leases[resource] = append(l.leases[resource], lease{l.fence, clock.After(now, d)})
	return l.fence, true
}

// keep drops the resource's leases for which ok is false. The caller holds l.mu.
func (l *LocalBudget) keep(resource string, ok func(lease) bool) {
	var kept []lease
	for _, have := range l.leases[resource] {
		if ok(have) {
			kept = append(kept, have)
		}
	}
	if len(kept) == 0 {
		delete(l.leases, resource)
		return
	}
	l.leases[resource] = kept
}
