package sluice_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// A tree is guards within guards, before they are made into a Chain.
type tree []sluice.Guard

func (g tree) Do(ctx context.Context, call func(context.Context) error) error {
	return sluice.Chain(g.guards()...).Do(ctx, call)
}

// guards returns g with each tree in it made into a Chain.
func (g tree) guards() []sluice.Guard {
	var built []sluice.Guard
	for _, guard := range g {
		if inner, ok := guard.(tree); ok {
			guard = sluice.Chain(inner.guards()...)
		}
		built = append(built, guard)
	}
	return built
}

// A model says what a chain must do, by the plain rule that the first guard is
// around all others. It writes into a journal what the real guards would.
type model struct {
	j    journal
	now  time.Duration
	call act
}

// An end is how a guard, with all within it, ends.
type end struct {
	err error
	cut string // how it ended if it did not return
}

func (e end) String() string { return result(e.err, e.cut == "") }

func (m *model) run(guards []sluice.Guard, probe bool) end {
	if len(guards) == 0 {
		m.enters("call", probe)
		m.now += time.Hour
		return m.does(m.call, "call", nil)
	}
	first, rest := guards[0], guards[1:]
	switch g := first.(type) {
	case tree:
		return m.run(slices.Concat([]sluice.Guard(g), rest), probe)
	case *toll:
		if e := m.does(g.admits, g.name, g.refusal); e != (end{}) {
			return e
		}
		m.enters(g.name+" admits", probe)
		m.now += g.waits
		e := m.run(rest, probe || g.probe)
		m.j.write(g.name, fmt.Sprint("settles: ", e, " at ", m.now))
		if own := m.does(g.settles, g.name, nil); own != (end{}) {
			return own
		}
		return e
	case *foreign:
		if e := m.does(g.before, g.name, g.refusal); e != (end{}) {
			return e
		}
		m.enters(g.name+" enters", probe)
		e := m.run(rest, probe)
		if e.err != nil && g.retries {
			m.j.write(g.name, "retries")
			e = m.run(rest, probe)
		}
		if e.cut != "" {
			return e
		}
		m.j.write(g.name, "leaves: "+e.String())
		if own := m.does(g.after, g.name, g.refusal); own != (end{}) {
			return own
		}
		return e
	}
	return m.run(rest, probe) // a nil one
}

func (m *model) enters(who string, probe bool) {
	if probe {
		who += " a probe"
	}
	m.j.write(who, fmt.Sprint("at ", m.now))
}

func (m *model) does(a act, who string, refusal error) end {
	if a == pass {
		return end{}
	}
	m.j.write(who, a.String())
	switch a {
	case refuse:
		return end{err: refusal}
	case panics:
		return end{cut: "panicked: " + who}
	case exits:
		return end{cut: "exited"}
	}
	return end{err: errDown}
}

// compare drives guards and the model, through Do and through Call. It must run
// in a bubble.
func compare(t *testing.T, j *journal, guards tree, call act) {
	t.Helper()
	m := model{call: call}
	want := m.run(guards, false)
	if want.cut == "" {
		want.cut = "returned"
	}
	for name, through := range map[string]func(context.Context, sluice.Guard, func(context.Context) error) error{"Do": do, "Call": callThrough} {
		j.lines, j.began = nil, clock.Now()
		var got end
		got.cut = ending(func() {
			got.err = through(t.Context(), sluice.Chain(guards.guards()...), j.doing(call))
		})
		require.Equalf(t, m.j.lines, j.lines, "through %s", name)
		require.Equalf(t, want.cut, got.cut, "through %s: %v", name, j.lines)
		if want.err == nil {
			require.NoErrorf(t, got.err, "through %s: %v", name, j.lines)
		} else {
			require.Samef(t, want.err, got.err, "through %s: %v", name, j.lines)
		}
	}
}

// Every arrangement of up to four stages, foreign guards and nils, with nothing
// going wrong and with everything that can, one at a time.
func TestChain_EveryArrangement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		var arrange func(kinds string)
		arrange = func(kinds string) {
			for _, call := range []act{pass, fails, panics, exits} {
				j := &journal{}
				compare(t, j, arrangement(j, kinds), call)
				runs++
			}
			for i := range kinds {
				for _, a := range []act{refuse, fails, panics, exits} {
					for _, in := range []bool{true, false} {
						if _, ours := arrangement(nil, kinds)[i].(*toll); ours && !in && a != panics && a != exits {
							continue // nothing else can go wrong on its way out
						}
						j := &journal{}
						guards := arrangement(j, kinds)
						switch g := guards[i].(type) {
						case *toll:
							if in {
								g.admits = a
							} else {
								g.probe, g.settles = true, a
							}
						case *foreign:
							if in {
								g.before = a
							} else {
								g.after = a
							}
						}
						compare(t, j, guards, pass)
						runs++
					}
				}
			}
			if len(kinds) < 4 {
				arrange(kinds + "s")
				arrange(kinds + "f")
				arrange(kinds + "-")
			}
		}
		arrange("")
		t.Log(runs, "runs")
	})
}

// arrangement makes guards of letters: s is a stage, f a foreign guard, - nil.
func arrangement(j *journal, kinds string) tree {
	guards := make(tree, len(kinds))
	for i, kind := range kinds {
		switch kind {
		case 's':
			guards[i] = j.toll(fmt.Sprint("s", i))
		case 'f':
			guards[i] = j.foreign(fmt.Sprint("f", i))
		}
	}
	return guards
}

// Random trees of guards that wait, probe, retry, refuse, fail, panic and exit.
func TestChain_AgainstTheModel(t *testing.T) {
	trees := 20_000
	if testing.Short() {
		trees = 2_000
	}
	synctest.Test(t, func(t *testing.T) {
		for seed := range trees {
			p := planter{r: rand.New(rand.NewPCG(1, uint64(seed))), j: &journal{}}
			guards := p.tree(3)
			compare(t, p.j, guards, p.often(pass, fails, panics, exits))
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	})
}

// A planter grows trees.
type planter struct {
	r *rand.Rand
	j *journal
	n int
}

func (p *planter) tree(depth int) tree {
	guards := make(tree, p.r.IntN(5))
	for i := range guards {
		p.n++
		switch kind := p.r.IntN(12); {
		case kind < 6:
			s := p.j.toll(fmt.Sprint("s", p.n), p.often(pass, refuse, panics, exits), p.often(pass, panics, exits))
			s.probe = p.r.IntN(6) == 0
			if p.r.IntN(4) == 0 {
				s.waits = time.Duration(p.r.IntN(10)) * time.Second
			}
			guards[i] = s
		case kind < 8:
			f := p.j.foreign(fmt.Sprint("f", p.n), p.often(pass, refuse, fails, panics, exits), p.often(pass, refuse, fails, panics, exits))
			f.retries = p.r.IntN(3) == 0
			guards[i] = f
		case kind < 11 && depth > 0:
			guards[i] = p.tree(depth - 1)
		}
	}
	return guards
}

// often returns the first most times.
func (p *planter) often(first act, others ...act) act {
	if p.r.IntN(8) > 0 {
		return first
	}
	return others[p.r.IntN(len(others))]
}

// The model is right about what can be seen by eye.
func TestModel(t *testing.T) {
	j := &journal{}
	queue, breaker := j.toll("queue"), j.toll("breaker")
	queue.waits, breaker.probe = time.Minute, true
	retry := j.foreign("retry")
	retry.retries = true
	m := model{call: fails}
	assert.Equal(t, end{err: errDown}, m.run(tree{retry, nil, tree{queue, tree{breaker}}}, false))
	assert.Equal(t, []string{
		"retry enters at 0s",
		"queue admits at 0s", "breaker admits at 1m0s", "call a probe at 1m0s", "call fails",
		"breaker settles: connection refused at 1h1m0s", "queue settles: connection refused at 1h1m0s",
		"retry retries",
		"queue admits at 1h1m0s", "breaker admits at 1h2m0s", "call a probe at 1h2m0s", "call fails",
		"breaker settles: connection refused at 2h2m0s", "queue settles: connection refused at 2h2m0s",
		"retry leaves: connection refused",
	}, m.j.lines)
}
