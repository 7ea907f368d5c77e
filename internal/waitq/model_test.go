package waitq

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A model says by looking at everything what a Queue has to find out quickly.
type model struct {
	policy Policy
	all    []*Entry[int] // in the order in which they came
	since  int64
	credit [Classes]int
}

func (m *model) of(class int) []*Entry[int] {
	var line []*Entry[int]
	for _, e := range m.all {
		if int(e.class) == class {
			line = append(line, e)
		}
	}
	return line
}

func (m *model) overload(now int64) bool {
	return len(m.all) > 0 && now-m.since >= int64(m.policy.Interval)
}

func (m *model) turn(e *Entry[int]) int64 {
	return e.at + int64(e.class)*min(int64(m.policy.Aging), math.MaxInt64/8)
}

// sorted are those that wait, the one to be served first in front, as if there
// were no shares.
func (m *model) sorted(now int64) []*Entry[int] {
	all := slices.Clone(m.all)
	lifo := m.policy.Newest && m.overload(now)
	var order []*Entry[int]
	for len(all) > 0 {
		best := -1
		for i, e := range all {
			outdone := slices.ContainsFunc(all[:i], func(o *Entry[int]) bool { return o.class == e.class })
			if lifo {
				outdone = slices.ContainsFunc(all[i+1:], func(o *Entry[int]) bool { return o.class == e.class })
			}
			if outdone {
				continue
			}
			if best < 0 || m.turn(e) < m.turn(all[best]) || m.turn(e) == m.turn(all[best]) && e.class < all[best].class {
				best = i
			}
		}
		order = append(order, all[best])
		all = slices.Delete(all, best, best+1)
	}
	return order
}

func (m *model) next(now int64) *Entry[int] {
	order := m.sorted(now)
	most := slices.Max(m.credit[:])
	for _, e := range order {
		if most < Whole {
			return e
		}
		if class := slices.Index(m.credit[:], most); int(e.class) == class {
			return e
		}
	}
	return nil
}

func (m *model) kept(class int) int { return m.policy.MaxQueue * m.policy.Shares[class] / Whole }

// out is who has to leave when e comes and there is no room.
func (m *model) out(e *Entry[int], now int64) *Entry[int] {
	lifo := m.policy.Newest && m.overload(now)
	var last *Entry[int]
	for _, w := range m.all {
		if len(m.of(int(w.class))) <= m.kept(int(w.class)) {
			continue
		}
		switch {
		case last == nil:
			last = w
		case !lifo && (m.turn(w) > m.turn(last) || m.turn(w) == m.turn(last) && w.class >= last.class):
			last = w
		case lifo && m.policy.Aging > 0 && w.class > last.class:
			last = w
		case lifo && m.policy.Aging == 0 && (w.at < last.at || w.at == last.at && w.class < last.class):
			last = w
		}
	}
	switch {
	case last == nil, m.policy.MaxQueue == 0:
		return e
	case len(m.of(int(e.class))) < m.kept(int(e.class)):
		return last
	case lifo && (m.policy.Aging == 0 || e.class <= last.class):
		return last
	case e.class < last.class && m.turn(e) < m.turn(last):
		return last
	}
	return e
}

func (m *model) remove(e *Entry[int]) {
	m.all = slices.DeleteFunc(m.all, func(w *Entry[int]) bool { return w == e })
	if len(m.of(int(e.class))) == 0 {
		m.credit[e.class] = 0
	}
}

func (m *model) serve(e *Entry[int]) {
	for class := range Classes {
		if len(m.of(class)) > 0 {
			m.credit[class] += m.policy.Shares[class]
		}
	}
	m.credit[e.class] = max(0, m.credit[e.class]-Whole)
	m.remove(e)
}

// walk runs n operations that draw chooses on a Queue and on the model.
func walk(t *testing.T, p Policy, n int, draw func(n int) int) {
	var q Queue[int]
	q.SetPolicy(p)
	m := &model{policy: p}
	now := int64(1)
	for step := range n {
		now += int64(draw(20))
		where := fmt.Sprintf("step %d of %+v", step, p)
		if draw(40) == 0 {
			p = randomPolicy(draw)
			m.policy = p
			q.SetPolicy(p)
		}
		switch op := draw(10); {
		case op < 5:
			e, class := &Entry[int]{Owner: step}, draw(Classes)
			full, overload := len(m.all) >= p.MaxQueue, m.overload(now)
			open := q.Open()&(1<<class) != 0
			var want *Entry[int]
			e.class, e.at = uint8(class), now
			if full {
				want = m.out(e, now)
			}
			wait := p.MaxWait
			if overload && p.Target > 0 {
				wait = min(wait, p.Target)
			}
			out := q.Push(e, class, now)
			require.Same(t, want, out, where)
			require.Equal(t, now+int64(wait), e.Deadline(), where)
			if !open {
				require.Same(t, e, out, "%s: closed for its class", where)
			}
			if out == e {
				require.False(t, e.Queued(), where)
				break
			}
			if len(m.all) == 0 {
				m.since = now
			}
			if out != nil {
				require.False(t, out.Queued(), where)
				m.remove(out)
			}
			m.all = append(m.all, e)
		case op < 8:
			want, got := m.next(now), q.Next(now)
			require.Same(t, want, got, where)
			if got != nil {
				q.Serve(got)
				m.serve(got)
			}
		case len(m.all) > 0:
			e := m.all[draw(len(m.all))]
			q.Remove(e)
			m.remove(e)
		}
		require.Equal(t, len(m.all), q.Len(), where)
		require.Equal(t, m.overload(now), q.Overloaded(now), where)
		for class := range q.lines {
			require.Equal(t, len(m.of(class)), q.lines[class].n, where)
			require.Less(t, q.lines[class].credit, 3*Whole, "claims do not pile up, "+where)
		}
	}
}

// randomPolicy draws one of every kind.
func randomPolicy(draw func(n int) int) Policy {
	p := Policy{MaxQueue: draw(8), MaxWait: time.Duration(10 + draw(30)), Newest: draw(2) == 0, Interval: time.Duration(1 + draw(60))}
	if draw(3) > 0 {
		p.Aging = time.Duration(1 + draw(100))
	}
	if draw(3) == 0 {
		p.Target = time.Duration(1 + draw(10))
	}
	if draw(2) == 0 {
		left := Whole
		for class := range p.Shares {
			p.Shares[class] = draw(left + 1)
			left -= p.Shares[class]
		}
	}
	return p
}

func TestQueue_FollowsTheModel(t *testing.T) {
	walks := 200
	if testing.Short() {
		walks = 50
	}
	for seed := range uint64(walks) {
		r := rand.New(rand.NewPCG(seed, 1))
		walk(t, randomPolicy(r.IntN), 200, r.IntN)
	}
}

func FuzzQueue(f *testing.F) {
	f.Add([]byte("\x05\x10\x00\x20\x01\x00 what order do they come and go in"))
	f.Add([]byte("\x02\x00\x00\x01\x00\x50\x01\x02\x03\x00\x01\x02\x05\x01\x01\x01\x03\x03\x08\x01\x01\x04"))
	f.Fuzz(func(t *testing.T, data []byte) {
		draw := func(n int) int {
			drawn := 0
			for range min(1+n/256, 3) {
				if len(data) == 0 {
					break
				}
				drawn, data = drawn<<8|int(data[0]), data[1:]
			}
			return drawn % n
		}
		walk(t, randomPolicy(draw), min(len(data)/2, 500), draw)
	})
}
