package canary

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Upstreams chooses which instance of a version serves a request: the same for the same
// id as long as the instances stay, on every replica and after every restart. It has
// nothing to do with the choice of the version: its hash is another one, so the users of
// a small canary spread over all of the canary's instances.
//
// Up to 32 instances are ranked for each id (rendezvous hashing); more have a table
// (Maglev). Adding one takes its share from the others and moves nobody else, removing
// one moves its own ids only; with the table up to about one id in a hundred moves
// besides. No instance has more than LoadFactor times its share of what is under way, as
// shared by those that are up: an id whose instance is that busy goes to its next one
// meanwhile. If all are that busy, as can be for a moment, the least loaded one is taken.
// Where there is no id, "", chance decides by the weights.
//
// Most callers want Acquire, and Done on the lease when the request has ended. Pick only
// tells where an id belongs.
//
// Acquire, Done and Pick take no lock and allocate nothing; changes take a mutex that
// they do not, and beyond 32 instances build a table of 128 kB. It starts no goroutine,
// is safe for concurrent use and must not be copied. A nil *Upstreams has no instance to
// give: Acquire returns a lease on nil, without an error. Make one with NewUpstreams.
type Upstreams struct {
	name string
	seed uint64
	// table is what is chosen from. Written by publish and flag, under mu.
	table   atomic.Pointer[upstreamTable]
	none    *NoUpstreamError
	refused atomic.Int64 // ids for which there was no instance; raised by Acquire
	_       [64]byte     // apart from what every call only reads
	load    atomic.Int64 // leases on all instances; raised by Acquire, lowered by Done
	_       [56]byte

	mu     sync.Mutex  // puts changes in order
	nodes  []*Upstream // also those that get nothing
	gone   []*Upstream // removed ones, the oldest first, so that their counts go on if they come back
	factor float64
}

// Upstream is one instance. Its methods are safe for concurrent use; those of the nil
// *Upstream return zero.
type Upstream struct {
	name     string
	seed     uint64
	weight   atomic.Int64 // written by install, under the owner's mu; so are down and drained, by flag and reborn
	down     atomic.Bool
	drained  atomic.Bool
	_        [64]byte     // apart from what every call only reads
	inFlight atomic.Int64 // leases; raised by Acquire, lowered by Done
	picked   atomic.Int64 // leases ever given; raised by Acquire, and spilled too
	spilled  atomic.Int64 // of these, those to ids that belong elsewhere
	_        [40]byte
}

// Name returns the instance's name, such as "10.0.0.1:8080".
func (u *Upstream) Name() string {
	if u == nil {
		return ""
	}
	return u.name
}

// InFlight returns how many leases there are on the instance.
func (u *Upstream) InFlight() int64 {
	if u == nil {
		return 0
	}
	return u.inFlight.Load()
}

// serves reports whether the instance may be given to anybody.
func (u *Upstream) serves() bool {
	return !u.down.Load() && !u.drained.Load() && u.weight.Load() > 0
}

const (
	maxUpstreams      = 1024
	maxUpstreamWeight = 1000
	// rankedAtMost is how many instances are ranked for each id; more take longer than to
	// look into a table.
	rankedAtMost = 32
)

// NewUpstreams returns the instances of that name, which must not be empty; two objects
// that should choose alike have the same name. It returns every complaint about the
// options at once. There may be no instance at first.
//
// For package variables there is sluice.Must.
func NewUpstreams(name string, opts ...UpstreamsOption) (*Upstreams, error) {
	set := &upstreamsSettings{UpstreamsConfig: DefaultUpstreamsConfig()}
	set.apply(opts)
	if name == "" {
		set.errs = append(set.errs, errors.New("canary: the name of the upstreams is empty"))
	}
	if err := set.check(); err != nil {
		return nil, err
	}
	u := &Upstreams{name: name, seed: xxh64("upstreams/"+name, 0), none: &NoUpstreamError{name}}
	u.install(set.UpstreamsConfig)
	return u, nil
}

// Name returns the name given to NewUpstreams.
func (u *Upstreams) Name() string {
	if u == nil {
		return ""
	}
	return u.name
}

// Pick returns the instance to which an id belongs, however busy it is. The only error
// is one that matches ErrNoUpstream.
func (u *Upstreams) Pick(id string) (*Upstream, error) {
	if u == nil {
		return nil, nil
	}
	t, h := u.table.Load(), u.hash(id)
	if i := t.first(h); i >= 0 && t.nodes[i].serves() {
		return t.nodes[i], nil
	}
	for i := range t.others(h) {
		if t.nodes[i].serves() {
			return t.nodes[i], nil
		}
	}
	if i := t.leastLoaded(); i >= 0 {
		return t.nodes[i], nil
	}
	return nil, u.none
}

// Acquire gives a lease on the instance to which an id belongs, or on the next one for it
// if that is too busy. Done must follow on the lease. The only error is one that matches
// ErrNoUpstream.
func (u *Upstreams) Acquire(id string) (UpstreamLease, error) {
	if u == nil {
		return UpstreamLease{}, nil
	}
	t, h := u.table.Load(), u.hash(id)
	load := u.load.Add(1)
	i := t.first(h)
	if i < 0 || !t.take(i, load) {
		if i = t.elsewhere(h, load); i < 0 {
			u.load.Add(-1)
			u.refused.Add(1)
			return UpstreamLease{}, u.none
		}
		t.nodes[i].spilled.Add(1)
	}
	t.nodes[i].picked.Add(1)
	return UpstreamLease{u, t.nodes[i]}, nil
}

// hash is the hash of an id; of none, any.
func (u *Upstreams) hash(id string) uint64 {
	if id == "" {
		return rand.Uint64()
	}
	return xxh64(id, u.seed)
}

// An UpstreamLease says that a request is under way on an instance. The first Done
// counts; the zero UpstreamLease's methods do nothing. It must not be copied.
type UpstreamLease struct {
	owner *Upstreams
	node  *Upstream
}

// Upstream returns the instance; nil after Done.
func (l *UpstreamLease) Upstream() *Upstream { return l.node }

// Done says that the request has ended.
func (l *UpstreamLease) Done() {
	if l.node == nil {
		return
	}
	l.node.inFlight.Add(-1)
	l.owner.load.Add(-1)
	*l = UpstreamLease{}
}
