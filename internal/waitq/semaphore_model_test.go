package waitq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A guest wants places, in the model as in the Semaphore.
type guest struct {
	Entry[*guest] // in the model's queue
	n, class      int
	until         int64 // when its ctx ends by itself
	cancel        context.CancelFunc
	want          verdict // what the model says; zero while it waits
	got           verdict // what Wait said
}

// A doorkeeper does what a Semaphore does, one thing at a time.
type doorkeeper struct {
	limit, inUse int
	queue        Queue[*guest] // which has a model of its own
	guests       []*guest
}

func (k *doorkeeper) comes(g *guest, now int64) {
	switch {
	case k.limit == 0:
		g.want = verdict{Closed, now}
	case g.n > k.limit:
		g.want = verdict{TooLarge, now}
	case k.queue.Len() == 0 && k.inUse+g.n <= k.limit:
		k.inUse += g.n
		g.want = verdict{Admitted, now}
	default:
		if out := k.queue.Push(&g.Entry, g.class, now); out != nil {
			out.Owner.want = verdict{Full, now}
		}
	}
	k.pass(now)
}

func (k *doorkeeper) pass(now int64) {
	for e := k.queue.Next(now); e != nil; e = k.queue.Next(now) {
		g := e.Owner
		switch {
		case now >= e.Deadline():
			k.goes(g, Expired, now)
		case k.limit == 0:
			k.goes(g, Closed, now)
		case g.n > k.limit:
			k.goes(g, TooLarge, now)
		case k.inUse+g.n <= k.limit:
			k.queue.Serve(e)
			k.inUse += g.n
			g.want = verdict{Admitted, now}
		default:
			return
		}
	}
}

func (k *doorkeeper) goes(g *guest, v Verdict, now int64) {
	k.queue.Remove(&g.Entry)
	g.want = verdict{v, now}
}

// ends is when a guest stops waiting.
func (g *guest) ends() int64 { return min(g.until, g.Deadline()) }

// rings lets go whoever stops waiting before now, in their order.
func (k *doorkeeper) rings(now int64) {
	for {
		var first *guest
		for _, g := range k.guests {
			if g.Queued() && g.ends() < now && (first == nil || g.ends() < first.ends()) {
				first = g
			}
		}
		if first == nil {
			return
		}
		at, v := first.ends(), Left
		if at == first.Deadline() {
			v = Expired
		}
		k.goes(first, v, at)
		k.pass(at)
	}
}

// Everything that the test does happens at multiples of a tick, plus 1; a policy's
// waits end between them, and so does each ctx, at an instant of its own. So nothing
// happens at the same time but what has the same effect in any order.
const (
	tick     = 1024
	halfTick = tick / 2
)

// Whatever is done to it, a Semaphore does what one who does one thing at a time
// would do: the same guests get in, at the same instants.
func TestSemaphore_FollowsTheModel(t *testing.T) {
	walks := 200
	if testing.Short() {
		walks = 40
	}
	for seed := range uint64(walks) {
		synctest.Test(t, func(t *testing.T) { guests(t, rand.New(rand.NewPCG(seed, 2))) })
	}
}

func guests(t *testing.T, r *rand.Rand) {
	start := time.Now()
	now := func() int64 { return int64(time.Since(start)) + 1 }
	p, limit := guestPolicy(r), r.IntN(6)
	s := NewSemaphore(limit, p, now)
	k := &doorkeeper{limit: limit}
	k.queue.SetPolicy(p)
	inside := func() (in []*guest) {
		for _, g := range k.guests {
			if g.want.is == Admitted {
				in = append(in, g)
			}
		}
		return in
	}
	leaves := func(g *guest) {
		g.cancel()
		k.guests = slices.DeleteFunc(k.guests, func(o *guest) bool { return o == g })
	}
	for step := range 150 {
		switch op := r.IntN(10); {
		case op < 4:
			g := &guest{n: 1 + r.IntN(3), class: r.IntN(Classes), until: Never}
			g.Owner = g
			ctx, cancel := context.WithCancel(t.Context())
			g.cancel = cancel
			if r.IntN(3) == 0 {
				d := time.Duration(r.IntN(60)*tick + step + 1)
				g.until = now() + int64(d)
				ctx, g.cancel = context.WithTimeout(ctx, d)
			}
			k.guests = append(k.guests, g)
			k.comes(g, now())
			at := now()
			go func() { g.got.at, g.got.is = s.Wait(ctx, g.n, g.class, at) }()
		case op < 7:
			if in := inside(); len(in) > 0 {
				g := in[r.IntN(len(in))]
				k.inUse -= g.n
				k.pass(now())
				s.Release(g.n)
				leaves(g)
			}
		case op < 8:
			if len(k.guests) > 0 {
				if g := k.guests[r.IntN(len(k.guests))]; g.Queued() {
					k.goes(g, Left, now())
					k.pass(now())
					g.cancel()
				}
			}
		case op < 9:
			time.Sleep(time.Duration(r.IntN(30) * tick))
			synctest.Wait()
			k.rings(now())
		case r.IntN(3) == 0:
			p, limit = guestPolicy(r), r.IntN(6)
			k.limit = limit
			k.queue.SetPolicy(p)
			k.pass(now())
			s.Update(limit, p)
		}
		synctest.Wait()
		where := fmt.Sprintf("step %d", step)
		for _, g := range slices.Clone(k.guests) {
			require.Equal(t, g.want, g.got, where)
			if g.want.is != 0 && g.want.is != Admitted {
				leaves(g)
			}
		}
		require.Equal(t, k.inUse, s.InUse(), where)
		n, overload := s.Queue(now())
		require.Equal(t, k.queue.Len(), n, where)
		require.Equal(t, k.queue.Overloaded(now()), overload, where)
		open := k.queue.Open()
		if k.limit == 0 {
			open = 0
		}
		require.Equal(t, open, s.Open(), where)
		require.Equal(t, n > 0, s.Wanted(), where)
	}
	for _, g := range slices.Clone(k.guests) {
		if g.want.is == Admitted {
			s.Release(g.n)
		}
		g.cancel()
	}
	s.Update(0, p)
}

// guestPolicy is a random one in ticks.
func guestPolicy(r *rand.Rand) Policy {
	p := randomPolicy(r.IntN)
	p.MaxWait = p.MaxWait*tick + halfTick
	if p.Target > 0 {
		p.Target = p.Target*tick + halfTick
	}
	p.Interval *= tick
	p.Aging *= tick
	return p
}
