package metrics

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	callsDesc = &Desc{Name: "calls", Help: "Calls by outcome.", Unit: "{call}", Kind: Counter, Labels: []string{"resource", "outcome"}}
	limitDesc = &Desc{Name: "limit", Help: "Most calls at once.", Kind: Gauge}
)

// gate is a Source of three samples that reuses one slice for their labels.
type gate struct {
	name string
	view any
}

func (g gate) Collect(yield func(Sample) bool) {
	labels := []string{g.name, "success"}
	if !yield(Sample{callsDesc, labels, 90}) {
		return
	}
	labels[1] = "failure"
	if !yield(Sample{callsDesc, labels, 10}) {
		return
	}
	yield(Sample{limitDesc, nil, 16})
}

func (g gate) View() any { return g.view }

// script is a Source that does what a test wants.
type script struct {
	collect func(yield func(Sample) bool)
	view    func() any
}

func (s script) Collect(yield func(Sample) bool) { s.collect(yield) }
func (s script) View() any                       { return s.view() }

// filled returns a Set with a gate under each name.
func filled(t *testing.T, names ...string) *Set {
	t.Helper()
	s := new(Set)
	for _, name := range names {
		require.NoError(t, s.Add(name, gate{name: name, view: map[string]string{"state": "closed"}}))
	}
	return s
}

// seen lists a Set's samples as WriteText names them, with their values.
func seen(s *Set) []string {
	var got []string
	for sample := range s.Collect {
		got = append(got, series(sample)+" "+number(sample.Value))
	}
	return got
}

func TestCollectGoesInOrderOfName(t *testing.T) {
	s := filled(t, "b", "a", "ab")
	assert.Equal(t, []string{
		`calls{resource="a",outcome="success"} 90`, `calls{resource="a",outcome="failure"} 10`, `limit 16`,
		`calls{resource="ab",outcome="success"} 90`, `calls{resource="ab",outcome="failure"} 10`, `limit 16`,
		`calls{resource="b",outcome="success"} 90`, `calls{resource="b",outcome="failure"} 10`, `limit 16`,
		`source_faults 0`,
	}, seen(s))
}

func TestAddRefuses(t *testing.T) {
	s := filled(t, "orders")
	assert.EqualError(t, s.Add("", gate{}), `metrics: name "" is empty`)
	assert.EqualError(t, s.Add("a\xff", gate{}), `metrics: name "a\xff" is not valid UTF-8`)
	assert.EqualError(t, s.Add("users", nil), `metrics: source of "users" is nil`)
	assert.EqualError(t, s.Add("orders", gate{name: "other"}), `metrics: name "orders" is taken`)
	assert.Contains(t, seen(s), `calls{resource="orders",outcome="success"} 90`, "the first one stays")
	assert.Len(t, seen(s), 4)
}

func TestRemove(t *testing.T) {
	s := filled(t, "a", "b", "c")
	assert.True(t, s.Remove("b"))
	assert.False(t, s.Remove("b"))
	assert.Equal(t, `{"a":{"state":"closed"},"c":{"state":"closed"}}`, s.String())
	assert.NoError(t, s.Add("b", gate{}), "the name is free again")
}

func TestZeroSet(t *testing.T) {
	var s Set
	assert.Equal(t, []string{"source_faults 0"}, seen(&s))
	assert.Equal(t, "{}", s.String())
	assert.False(t, s.Remove("a"))
}

func TestCollectStopsWhereYieldSaysSo(t *testing.T) {
	const all = 7 // two gates, and source_faults
	s := filled(t, "a", "b")
	for want := 1; want <= all; want++ {
		asked := 0
		s.Collect(func(Sample) bool {
			asked++
			return asked < want
		})
		assert.Equal(t, want, asked)
	}
}

func TestCollectStopsASourceThatDoesNotListen(t *testing.T) {
	var s Set
	deaf := func(yield func(Sample) bool) {
		for range 5 {
			yield(Sample{limitDesc, nil, 1})
		}
	}
	require.NoError(t, s.Add("deaf", script{collect: deaf}))
	for range s.Collect { // the range panics when it is called again after a break
		break
	}
	assert.Equal(t, "source_faults 0", seen(&s)[5])
}

// A Source and a yield may call the Set: nothing is locked meanwhile.
func TestCollectHoldsNoLock(t *testing.T) {
	s := filled(t, "b")
	require.NoError(t, s.Add("a", script{
		collect: func(yield func(Sample) bool) {
			s.Remove("b")
			yield(Sample{limitDesc, nil, 1})
		},
		view: func() any { return s.Add("z", gate{}) },
	}))
	var got []string
	for sample := range s.Collect {
		_ = s.Add("c", gate{})
		got = append(got, series(sample)+" "+number(sample.Value))
	}
	assert.Equal(t, []string{
		"limit 1",
		`calls{resource="b",outcome="success"} 90`, `calls{resource="b",outcome="failure"} 10`, `limit 16`,
		"source_faults 0",
	}, got, "those that were listed when it began")
	assert.JSONEq(t, `{"a": null, "c": null}`, s.String(), "z came after the listing was made")
	assert.JSONEq(t, `{"a": {}, "c": null, "z": null}`, s.String(), "and its name is taken now")
}

func TestAPanickingSourceTakesNobodyDown(t *testing.T) {
	s := filled(t, "a", "c")
	require.NoError(t, s.Add("b", script{collect: func(yield func(Sample) bool) {
		yield(Sample{limitDesc, nil, 1})
		panic("no more")
	}}))
	got := seen(s)
	assert.Len(t, got, 8)
	assert.Contains(t, got, "limit 1", "what came before the panic stands")
	assert.Equal(t, "source_faults 1", got[7])
	assert.Equal(t, "source_faults 2", seen(s)[7])
}

func TestAMalformedSampleIsLeftOut(t *testing.T) {
	var s Set
	require.NoError(t, s.Add("a", script{collect: func(yield func(Sample) bool) {
		yield(Sample{callsDesc, []string{"a"}, 1})
		yield(Sample{nil, nil, 2})
		yield(Sample{limitDesc, nil, 3})
	}}))
	assert.Equal(t, []string{"limit 3", "source_faults 2"}, seen(&s))
}

// What the consumer does in its own yield is not the Source's fault.
func TestAPanicOfYieldGoesOn(t *testing.T) {
	s := filled(t, "a")
	assert.PanicsWithValue(t, "mine", func() {
		for range s.Collect {
			panic("mine")
		}
	})
	assert.Equal(t, "source_faults 0", seen(s)[3])

	returned := false
	var done sync.WaitGroup
	done.Go(func() {
		for range s.Collect {
			runtime.Goexit()
		}
		returned = true
	})
	done.Wait()
	assert.False(t, returned)
}

func TestASetIsSafeForConcurrentUse(t *testing.T) {
	s := filled(t, "first", "last")
	var writers, readers sync.WaitGroup
	var stop atomic.Bool
	for _, name := range []string{"m", "n", "n"} { // two of them want the same name
		writers.Go(func() {
			for !stop.Load() {
				if s.Add(name, gate{name: name}) == nil && !s.Remove(name) {
					t.Errorf("%q was taken off by somebody else", name)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for range 200 {
				var names []string
				for sample := range s.Collect {
					if sample.Desc == callsDesc && sample.Labels[1] == "success" {
						names = append(names, sample.Labels[0])
					}
				}
				assert.IsIncreasing(t, names)
				assert.Subset(t, names, []string{"first", "last"})
				assert.Contains(t, s.String(), `"last":{"state":"closed"}`)
			}
		})
	}
	readers.Wait()
	stop.Store(true)
	writers.Wait()
	assert.Len(t, seen(s), 7)
}
