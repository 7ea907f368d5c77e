package canary

import (
	"sync/atomic"

	"github.com/sluicego/sluice/internal/stripe"
)

// Version is one of the versions that a Picker chooses from. A Picker has one object
// for each name, whatever becomes of its weight, so versions can be compared by
// pointer and be keys of a map.
//
// It counts how often it was picked, and what is under way in it: Enter before the
// request is handed on, Leave when it has ended; InFlight is 0 when a version that
// was retired can be switched off. All methods are safe for concurrent use, take no
// lock and allocate nothing. The nil *Version, which a nil *Picker picks, has no
// name, and its methods do nothing.
type Version struct {
	name string
	// picks and flight are spread over cache lines, since every request adds to them;
	// apart from the name, which every request reads.
	_      [stripe.Line]byte
	picks  [stripe.Cells]picks
	flight [stripe.Cells]flight
}

// picks counts decisions for a version: by reason, and those of Split by where the
// identity was found, so that one decision is one addition. Two cache lines. Raised
// by whoever picks.
type picks struct {
	by [slots]atomic.Int64
	_  [2*stripe.Line - 8*slots]byte
}

// slots is how many counters picks has: one for each reason, where that of Split is
// for identities of no named source, and one for each named source.
const slots = reasons + sources

// slot is the counter of a decision.
func slot(r Reason, s Source) int {
	if r == Split && s > 0 && int(s) <= sources {
		return reasons - 1 + int(s)
	}
	return int(r) - 1
}

// flight counts requests that began and that ended. Both only grow: a request may end
// on another stripe than it began on, and sums of numbers that only grow can be read
// so that nothing under way is missed.
type flight struct {
	entered atomic.Int64 // raised by Enter
	left    atomic.Int64 // raised by Leave
	_       [stripe.Line - 16]byte
}

// Name returns the version's name.
func (v *Version) Name() string {
	if v == nil {
		return ""
	}
	return v.name
}

// String returns the name.
func (v *Version) String() string { return v.Name() }

// Enter says that a request is handed to the version. Leave must follow.
func (v *Version) Enter() {
	if v != nil {
		v.flight[stripe.Index()].entered.Add(1)
	}
}

// Leave says that a request, for which Enter was called, has ended.
func (v *Version) Leave() {
	if v != nil {
		v.flight[stripe.Index()].left.Add(1)
	}
}

// InFlight returns how many requests are under way. While some come and go it may say
// more than there are; it never leaves out one that was under way throughout.
func (v *Version) InFlight() int64 {
	if v == nil {
		return 0
	}
	var n int64
	for i := range v.flight { // those that left first, so that none of these is missing below
		n -= v.flight[i].left.Load()
	}
	for i := range v.flight {
		n += v.flight[i].entered.Load()
	}
	return n
}

// count counts one decision, by its slot.
func (v *Version) count(slot int) { v.picks[stripe.Index()].by[slot].Add(1) }

// picked adds the stripes up, by slot.
func (v *Version) picked() (n [slots]int64) {
	for i := range v.picks {
		for s := range n {
			n[s] += v.picks[i].by[s].Load()
		}
	}
	return n
}
