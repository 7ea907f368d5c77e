package canary

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/notify"
	"github.com/sluicego/sluice/metrics"
)

// Picker decides which version of a service serves a request: one stable version, and
// others that get a share each.
//
// It promises that an identity gets the same version on every replica, after every
// restart and in every release, as long as the weights stay; that shares are exact to
// one ppm of the points that identities are hashed to; and that a change of weights
// moves as few as can be, and nobody between two versions whose weights did not
// change (while lanes do not collide, see the package comment). What it cannot serve
// as wished it serves by the stable version or the split: it refuses no request.
//
// Most callers want Decide. Pick is the split alone, for those who have an id and no
// wishes; SetWeights and Rollback change the shares.
//
// Pick, PickRandom and Decide take no lock and allocate nothing (Decide does to check
// a token). Changes take a mutex that no pick takes; after one has returned, no pick
// that begins goes by what was before. A Picker starts no goroutine and needs no
// closing. It is safe for concurrent use and must not be copied. A nil *Picker has no
// opinion: it picks the nil *Version, whose name is "". The zero Picker is of no use,
// make one with New.
type Picker struct {
	// current is what picks go by. Written by publish alone, under mu.
	current atomic.Pointer[table]
	name    string
	hooks
	ignored [ignorances]atomic.Int64 // wishes that were not granted; raised by Decide

	mu      sync.Mutex          // puts changes in order; no foreign code runs under it
	known   map[string]*Version // every version of the plan, and the retired that are remembered
	retired []string            // of known, the oldest first
	// forgotten is what versions had served that are remembered no more, by slot.
	forgotten [slots]int64
	reported  [sources]metrics.Total // keeps identities from going down
	events    notify.Queue[Change]
	panics    atomic.Uint64 // of listeners, which were caught
}

// New returns a picker of that name whose stable version is called stable. It returns
// every complaint about the options at once.
//
// For package variables there is sluice.Must.
func New(name, stable string, opts ...Option) (*Picker, error) {
	s := newSettings(stable)
	s.apply(opts)
	s.errs.name("the name", name)
	s.errs.unless(s.group == nil, "WithMaxKeys and WithRoute are for NewGroup")
	if err := s.check(); err != nil {
		return nil, err
	}
	return newPicker(name, s.Config, s.hooks), nil
}

// newPicker makes a picker of what has been validated.
func newPicker(name string, c Config, h hooks) *Picker {
	p := &Picker{name: name, hooks: h, known: map[string]*Version{}}
	plan := Plan{Name: name, Generation: 1, Config: c.Clone(), Salt: c.salt(name)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.publish(plan, clock.Now())
	return p
}

// salt is the salt, or what is worked out for it.
func (c *Config) salt(name string) string {
	if c.Salt != "" {
		return c.Salt
	}
	return name + "/" + c.Stable
}

// Name returns the name given to New.
func (p *Picker) Name() string {
	if p == nil {
		return ""
	}
	return p.name
}

// Pick returns the version of an identity: its split, whatever wishes there are. An
// empty id is no identity; it gets what Decide would give it.
func (p *Picker) Pick(id string) *Version {
	if p == nil {
		return nil
	}
	t := p.current.Load()
	if id == "" {
		return p.anonymous(t).Version
	}
	v := t.at(t.point(id))
	if t.split >= 0 {
		v.count(t.split)
	}
	return v
}

// PickRandom returns a version by chance, each by its weight. Twice in a row it may
// return two.
func (p *Picker) PickRandom() *Version {
	if p == nil {
		return nil
	}
	return p.random(p.current.Load()).Version
}

// anonymous decides on a request without an identity.
func (p *Picker) anonymous(t *table) Decision {
	if t.plan.Config.NoIdentity == StableVersion && !t.killed {
		return t.decided(t.stable, Default, 0, 0)
	}
	return p.random(t)
}

// random throws a point.
func (p *Picker) random(t *table) Decision {
	point := rand.Uint32N(points)
	if t.killed {
		return t.decided(t.stable, Killed, 0, point)
	}
	return t.decided(t.at(point), Random, 0, point)
}

// decided counts a decision and returns it.
func (t *table) decided(v *Version, r Reason, s Source, point uint32) Decision {
	if t.counted {
		v.count(slot(r, s))
	}
	return Decision{Version: v, Reason: r, Point: point, Generation: t.generation}
}

// Stable returns the stable version.
func (p *Picker) Stable() *Version {
	if p == nil {
		return nil
	}
	return p.current.Load().stable
}

// Version returns the version of that name, also one that was retired not long ago;
// nil if there is none.
func (p *Picker) Version(name string) *Version {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[name]
}

// Share returns which share the version has now: all of it or none while Kill is in
// force, 0 for one that there is not.
func (p *Picker) Share(version string) Weight {
	if p == nil {
		return 0
	}
	return p.current.Load().share(version, clock.Now())
}

// Generation returns the plan's, which goes up by one with each change.
func (p *Picker) Generation() uint64 {
	if p == nil {
		return 0
	}
	return p.current.Load().generation
}
