package ratelimit

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// workers is how many accounts Run serves at the same time.
const workers = 8

// runner is one Run of a node. Its goroutine owns all of it.
type runner struct {
	node   *node
	config func() SharedConfig
	agenda agenda
	census census
	busy   int          // workers
	done   chan visited // by workers
	// When to beat next in ModeShared, and whether a beat, or in ModeFallback a try, is
	// under way.
	beatAt  int64
	beating bool
}

// visited is what a worker has done.
type visited struct {
	account *account // nil for a beat or a try
	due     int64    // when to come again, 0 for never
	nodes   int64    // how many there are, 0 if that is not known
	tried   bool
}

// run does what can be put off, until ctx ends: it buys leases before they are used
// up, returns those that are not used, says that the node is alive and counts the
// others, and tries a store that does not answer.
func (n *node) run(ctx context.Context, config func() SharedConfig, all iter.Seq[*account]) error {
	if !n.running.CompareAndSwap(false, true) {
		return fmt.Errorf("ratelimit: %q runs already", n.name)
	}
	r := &runner{node: n, config: config, done: make(chan visited)}
	for a := range all {
		a.kick() // there may be leases of before
	}
	for ctx.Err() == nil {
		r.admit()
		r.start(ctx, clock.Now())
		r.wait(ctx)
	}
	for r.busy > 0 {
		r.finish(<-r.done)
	}
	n.running.Store(false)
	r.leave(ctx)
	return context.Cause(ctx)
}

// admit puts those who have been kicked on the agenda.
func (r *runner) admit() {
	now := clock.Now()
	for a := r.node.work.kicked.Swap(nil); a != nil; {
		next := a.next
		a.next = nil
		if a.visiting {
			a.again = true
		} else {
			r.agenda.set(a, now)
		}
		a = next
	}
}

// start lets workers do what is due.
func (r *runner) start(ctx context.Context, now int64) {
	if now >= r.nextBeat() && !r.beating {
		r.beating = true
		r.busy++
		go r.beat(ctx)
	}
	for r.busy < workers {
		a := r.agenda.take(now)
		if a == nil {
			return
		}
		a.visiting = true
		r.busy++
		go r.visit(ctx, a, now)
	}
}

// visit lets a worker visit a, also if the store ends the goroutine.
func (r *runner) visit(ctx context.Context, a *account, now int64) {
	v := visited{account: a, due: clock.After(now, r.config().SyncEvery)}
	defer func() { r.done <- v }()
	v.due = a.visit(ctx)
}

// wait waits until there is something to do.
func (r *runner) wait(ctx context.Context) {
	next := int64(math.MaxInt64)
	if !r.beating {
		next = r.nextBeat()
	}
	if len(r.agenda) > 0 && r.busy < workers {
		next = min(next, r.agenda[0].due)
	}
	timer := time.NewTimer(time.Duration(max(0, next-clock.Now())))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.node.work.wake:
	case <-timer.C:
	case v := <-r.done:
		r.finish(v)
	}
}

// finish does what a worker's result asks for.
func (r *runner) finish(v visited) {
	r.busy--
	a := v.account
	if a == nil {
		r.beating = false
		if !v.tried {
			r.beatAt = clock.After(clock.Now(), r.config().NodeTTL/3)
		}
		if v.nodes > 0 {
			r.node.count.Store(r.census.count(r.node.count.Load(), min(v.nodes, maxNodes)))
		}
		return
	}
	a.visiting = false
	switch {
	case a.again:
		a.again = false
		r.agenda.set(a, clock.Now())
	case v.due > 0:
		r.agenda.set(a, v.due)
	default:
		a.listed.Store(false)
		if a.overlooked() {
			a.kick()
		}
	}
}

// nextBeat is when to beat next, or to try.
func (r *runner) nextBeat() int64 {
	if st := r.node.cur.Load(); st.mode == ModeFallback {
		return st.until.Load()
	}
	if r.config().Threshold.Kind == PerNodeThreshold {
		return math.MaxInt64
	}
	return r.beatAt
}

// beat says that this node is alive, or finds out whether the store is.
func (r *runner) beat(ctx context.Context) {
	c, v := r.config(), visited{tried: r.node.cur.Load().mode == ModeFallback}
	defer func() { r.done <- v }() // also if the store ends the goroutine
	if v.tried {
		_ = r.node.try(ctx, c.StoreTimeout)
		return
	}
	if nodes, err := r.node.beat(ctx, c.StoreTimeout, c.NodeTTL); err == nil {
		v.nodes = nodes
	}
}

// goodbye is how long leaving may take, after ctx has ended.
const goodbye = time.Second

// leave returns what the node holds and says goodbye, if the store answers.
func (r *runner) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	r.admit()
	for _, a := range r.agenda {
		a.slot = unlisted
		a.listed.Store(false)
		a.kicked.Store(false)
		if r.node.cur.Load().mode == ModeShared {
			a.close(ctx)
		}
	}
	if c := r.config(); c.Threshold.Kind != PerNodeThreshold && r.node.cur.Load().mode == ModeShared {
		_, _ = r.node.beat(ctx, c.StoreTimeout, 0)
	}
}

// census counts nodes with hysteresis, so that one late beat changes no threshold.
type census struct {
	heard bool
	last  int64 // what was heard last, 0 if it was what counts
}

// count returns how many nodes there are, when there were so many and now so many are
// heard of: another number counts when two beats in a row say that it is more, or
// less, and then the one that is closer. The first beat counts if it says more.
func (c *census) count(counted, heard int64) int64 {
	if !c.heard {
		c.heard, c.last = true, heard
		return max(counted, heard)
	}
	last := c.last
	c.last = heard
	switch {
	case last > counted && heard > counted:
		counted = min(last, heard)
	case last > 0 && last < counted && heard < counted:
		counted = max(last, heard)
	}
	if heard == counted {
		c.last = 0
	}
	return counted
}
