package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// A Set is what exporters, dashboards and reports read: all guards of a process,
// each under a name. There is no global one; a program makes its own and hands
// it on.
//
// A Source at fault takes nobody else down. When its Collect or View panics, the
// panic ends there, and the samples that came before it stand; a sample whose
// labels do not match its Desc is left out. Each is counted in source_faults,
// which Collect yields last.
//
// The zero value is ready. A Set is safe for concurrent use and must not be
// copied. It holds no lock while a Source or a yield runs, so both may call it.
type Set struct {
	mu      sync.Mutex
	entries []entry // in order of name; changed in place, so readers copy it
	faults  atomic.Uint64
}

type entry struct {
	name   string
	source Source
}

// Add lists src under name, which must be valid UTF-8, not empty, and not taken. The
// name is for people: it is the key in JSON and in text, and no label of the samples.
// Guards of one kind must differ by the names that they were made with, or their
// samples cannot be told apart.
func (s *Set) Add(name string, src Source) error {
	switch {
	case name == "":
		return fmt.Errorf("metrics: name %q is empty", name)
	case !utf8.ValidString(name):
		return fmt.Errorf("metrics: name %q is not valid UTF-8", name)
	case src == nil:
		return fmt.Errorf("metrics: source of %q is nil", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, taken := s.find(name)
	if taken {
		return fmt.Errorf("metrics: name %q is taken", name)
	}
	s.entries = slices.Insert(s.entries, i, entry{name, src})
	return nil
}

// Remove takes name off the list, and reports whether it was there. A Collect
// that is running may still ask its Source.
func (s *Set) Remove(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := s.find(name)
	if found {
		s.entries = slices.Delete(s.entries, i, i+1)
	}
	return found
}

// Collect calls yield with the samples of each Source, in order of name, until
// yield returns false. The Labels of a Sample are valid until yield returns. It
// can be ranged over: for sample := range set.Collect.
func (s *Set) Collect(yield func(Sample) bool) {
	s.collect(yield, func(string, any) {})
}

var faultsDesc = &Desc{
	Name: "source_faults",
	Help: "Panics of sources while they were read, and samples left out because their labels did not fit.",
	Unit: "{fault}",
	Kind: Counter,
}

// collect is Collect that also tells of each fault, as it comes.
func (s *Set) collect(yield func(Sample) bool, onFault func(name string, fault any)) {
	for _, e := range s.list() {
		if !s.collectOne(e, yield, onFault) {
			return
		}
	}
	yield(Sample{Desc: faultsDesc, Value: float64(s.faults.Load())})
}

// collectOne reports whether yield wants more.
func (s *Set) collectOne(e entry, yield func(Sample) bool, onFault func(string, any)) (more bool) {
	more = true
	theirs := true // the code that runs is the Source's, not the consumer's
	fault := func(what any) {
		s.faults.Add(1)
		onFault(e.name, what)
	}
	defer func() {
		if !theirs {
			return // a panic of yield is the consumer's own, and goes on to it
		}
		if p := recover(); p != nil {
			fault(p)
		}
	}()
	e.source.Collect(func(sample Sample) bool {
		if !more {
			return false // it was told so already
		}
		theirs = false
		if sample.fits() {
			more = yield(sample)
		} else {
			fault("a sample's labels do not fit its Desc")
		}
		theirs = true
		return more
	})
	return more
}

// list is a copy of entries, so that no lock is held while they are asked.
func (s *Set) list() []entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.entries)
}

func (s *Set) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.entries, name, func(e entry, name string) int {
		return cmp.Compare(e.name, name)
	})
}
