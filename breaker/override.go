package breaker

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// Force puts an override in force for ttl, or until Unforce if ttl is 0. It
// replaces an override that is there. The state underneath stays, and a result
// that comes in still counts. It returns an error for an unknown mode or a
// negative ttl, and does nothing then.
func (b *Breaker) Force(m Mode, ttl time.Duration) error { return b.force(clock.Now(), m, ttl) }

// Unforce ends the override, if there is one.
func (b *Breaker) Unforce() {
	if b == nil {
		return
	}
	b.mu.Lock()
	was := b.plan.Load().mode
	if was != 0 {
		b.plan.Store(b.plan.Load().withMode(b.name, 0, 0))
	}
	b.mu.Unlock()
	if was != 0 {
		b.logForced(0, 0)
	}
}

// Trip opens the breaker for exactly d from now, or for its configured open period
// if d is 0; in Open it sets a new deadline. A negative d is an error. The probes
// that follow are as after any other trip.
func (b *Breaker) Trip(d time.Duration) error { return b.trip(clock.Now(), d) }

// Reset closes the breaker with an empty window, and forgets the backoff. An
// override stays.
func (b *Breaker) Reset() { b.reset(clock.Now()) }

func (b *Breaker) force(now int64, m Mode, ttl time.Duration) error {
	if m < ForcedOpen || m > Shadow {
		return fmt.Errorf("breaker: mode %d is not one of forced_open, forced_closed, disabled, shadow", uint8(m))
	}
	if ttl < 0 {
		return fmt.Errorf("breaker: ttl %v is negative", ttl)
	}
	if b == nil {
		return nil
	}
	var until int64
	if ttl > 0 {
		until = clock.After(now, ttl)
	}
	b.countRefusals()
	b.mu.Lock()
	b.plan.Store(b.plan.Load().withMode(b.name, m, until))
	b.mu.Unlock()
	b.member.Needed(b)
	b.logForced(m, ttl)
	return nil
}

func (b *Breaker) trip(now int64, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("breaker: Trip(%v) is negative", d)
	}
	if b == nil {
		return nil
	}
	b.replace(func(p *plan, e *episode) *episode {
		if d > 0 {
			return b.newOpenFor(p, e, now, d)
		}
		return b.newOpen(p, now, Cause{Reason: TripRequested}, nil, e.levelKept(p, now))
	})
	return nil
}

func (b *Breaker) reset(now int64) {
	if b == nil {
		return
	}
	b.replace(func(p *plan, _ *episode) *episode {
		return b.newClosed(p, now, Cause{Reason: ResetRequested}, nil)
	})
}

// replace ends whatever episode is current.
func (b *Breaker) replace(next func(*plan, *episode) *episode) {
	b.mu.Lock()
	e := b.cur.Load()
	b.move(context.Background(), e, next(b.plan.Load(), e))
	b.mu.Unlock()
	b.deliver()
}
