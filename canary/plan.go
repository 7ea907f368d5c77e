package canary

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// Plan is all that decides who gets which version, as plain data: what a Picker works
// by now, for replicas to Apply. Pickers with equal plans decide alike.
//
// In JSON the keys are in snake case; an unknown key is an error.
type Plan struct {
	// Name is the Picker's; a plan is refused by a Picker of another name.
	Name string
	// Generation goes up with each change. A Picker refuses a plan that is older than
	// its own.
	Generation uint64
	// Config is what is split by. Weights of versions that are rolled back are 0 in it.
	Config Config
	// Salt is Config.Salt, or what was worked out for it.
	Salt string
	// Killed is why everything goes to the stable version; "" if it does not.
	Killed string
	// RolledBack are the versions that may not come back until Readmit.
	RolledBack []RolledBack
	// Readmitted are versions whose rollback was taken back, so that those who apply
	// the plan do so too.
	Readmitted []Readmitted
	// Draining are the versions that get nobody new.
	Draining []Draining
}

// RolledBack is a version that was rolled back.
type RolledBack struct {
	Version string
	Cause   string
	At      time.Time
	// Over, if not 0, is how long its share takes to fall from From to nothing, in a
	// straight line from At on.
	Over time.Duration
	From Weight
	// Lane is where it still has its users meanwhile.
	Lane int
	// Generation is that of the plan in which it was first.
	Generation uint64
}

// Readmitted is a version whose rollback was taken back, by the plan of Generation; what
// was rolled back by a later plan stays so.
type Readmitted struct {
	Version    string `json:"version"`
	Generation uint64 `json:"generation"`
}

// Draining is a version that serves only those who have a stored assignment.
type Draining struct {
	Version string    `json:"version"`
	Until   time.Time `json:"until"`
}

// Clone returns a copy that shares nothing with p.
func (p Plan) Clone() Plan {
	p.Config = p.Config.Clone()
	p.RolledBack, p.Readmitted, p.Draining = slices.Clone(p.RolledBack), slices.Clone(p.Readmitted), slices.Clone(p.Draining)
	return p
}

// Validate returns all that is wrong with p, joined; nil if nothing is.
func (p Plan) Validate() error {
	var v complaints
	for _, list := range []struct {
		name      string
		size, max int
	}{{"RolledBack", len(p.RolledBack), maxRemembered}, {"Readmitted", len(p.Readmitted), maxRemembered}, {"Draining", len(p.Draining), MaxLanes}} {
		v.unless(list.size <= list.max, "%s has %d entries, more than %d", list.name, list.size, list.max)
	}
	if err := p.Config.tooMany(); err != nil || len(v) > 0 {
		return errors.Join(append(v, err)...) // no list is looked through before
	}
	v.named("Name", p.Name, maxPickerName)
	v.unless(p.Generation > 0, "Generation 0 is not positive")
	v.unless(p.Generation <= maxGeneration, "Generation %d is more than %d", p.Generation, uint64(maxGeneration))
	v.unless(len(p.Killed) <= maxCause, "Killed has %d bytes, more than %d", len(p.Killed), maxCause)
	v.unless(p.Salt != "", "Salt is empty")
	v.unless(p.Config.Salt == "" || p.Config.Salt == p.Salt, "Salt %q is not Config.Salt %q", p.Salt, p.Config.Salt)
	v.unless(len(p.Salt) <= maxSalt, "Salt has %d bytes, more than %d", len(p.Salt), maxSalt)
	for i, r := range p.RolledBack {
		field := fmt.Sprintf("RolledBack[%d]", i)
		v.name(field+".Version", r.Version)
		v.unless(r.Version != p.Config.Stable || r.Version == "", "%s.Version %q is the stable version", field, r.Version)
		v.unless(r.Over >= 0, "%s.Over %v is negative", field, r.Over)
		v.unless(r.Lane >= 0 && r.Lane < MaxLanes, "%s.Lane %d is not in [0, %d)", field, r.Lane, MaxLanes)
		if err := r.From.Validate(); err != nil {
			v = append(v, fmt.Errorf("%w, as From of %s", err, field))
		}
		if o := p.version(r.Version); o != nil {
			v.unless(o.Weight == 0, "%s.Version %q has a weight of %v", field, r.Version, o.Weight)
		}
		v.unless(p.readmitted(r.Version) == nil, "%s.Version %q is in Readmitted too", field, r.Version)
		v.unless(len(r.Cause) <= maxCause, "%s.Cause has %d bytes, more than %d", field, len(r.Cause), maxCause)
		v.unless(p.rolledBack(r.Version) == &p.RolledBack[i], "%s.Version %q stands there twice", field, r.Version)
	}
	for i, r := range p.Readmitted {
		v.name(fmt.Sprintf("Readmitted[%d].Version", i), r.Version)
	}
	for i, d := range p.Draining {
		field := fmt.Sprintf("Draining[%d]", i)
		o := p.version(d.Version)
		v.unless(o != nil, "%s.Version %q is not in Config", field, d.Version)
		v.unless(o == nil || o.Weight == 0, "%s.Version %q has a weight, and gets nobody new", field, d.Version)
	}
	return errors.Join(append(v, p.Config.Validate())...)
}

// maxRemembered bounds how many rollbacks, and how many retired versions, are
// remembered; the oldest are forgotten first.
const maxRemembered = 64

const (
	maxCause = 1024
	// maxGeneration is what every reader of JSON can tell from its neighbours. Nobody gets
	// there by counting; a plan from elsewhere that has more would bring generations to an
	// end.
	maxGeneration = 1<<53 - 1
)

// brief is a cause as a plan can have it.
func brief(cause string) string {
	return strings.ToValidUTF8(cause[:min(len(cause), maxCause)], "")
}

// version returns the entry of a version beside the stable one, nil if there is none.
func (p *Plan) version(name string) *VersionConfig {
	for i := range p.Config.Versions {
		if p.Config.Versions[i].Name == name {
			return &p.Config.Versions[i]
		}
	}
	return nil
}

// rolledBack returns the entry of a version that was rolled back, nil if it was not.
func (p *Plan) rolledBack(name string) *RolledBack {
	for i := range p.RolledBack {
		if p.RolledBack[i].Version == name {
			return &p.RolledBack[i]
		}
	}
	return nil
}

// readmitted returns the entry of a version whose rollback was taken back, nil if there
// is none.
func (p *Plan) readmitted(name string) *Readmitted {
	for i := range p.Readmitted {
		if p.Readmitted[i].Version == name {
			return &p.Readmitted[i]
		}
	}
	return nil
}

// planJSON and rolledBackJSON are Plan and RolledBack as JSON has them.
type planJSON struct {
	Name       string       `json:"name"`
	Generation uint64       `json:"generation"`
	Config     Config       `json:"config"`
	Salt       string       `json:"salt"`
	Killed     string       `json:"killed"`
	RolledBack []RolledBack `json:"rolled_back"`
	Readmitted []Readmitted `json:"readmitted"`
	Draining   []Draining   `json:"draining"`
}

type rolledBackJSON struct {
	Version    string            `json:"version"`
	Cause      string            `json:"cause"`
	At         time.Time         `json:"at"`
	Over       jsontime.Duration `json:"over"`
	From       Weight            `json:"from"`
	Lane       int               `json:"lane"`
	Generation uint64            `json:"generation"`
}

// MarshalJSON writes every key.
func (p Plan) MarshalJSON() ([]byte, error) { return json.Marshal(planJSON(p)) }

// UnmarshalJSON reads a whole plan: what is absent is empty, an unknown key is an
// error. It does not validate; p is as before when it returns an error.
func (p *Plan) UnmarshalJSON(data []byte) error {
	j := planJSON{Config: DefaultConfig()}
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*p = Plan(j)
	return nil
}

// MarshalJSON writes every key.
func (r RolledBack) MarshalJSON() ([]byte, error) {
	return json.Marshal(rolledBackJSON{r.Version, r.Cause, r.At, jsontime.Duration(r.Over), r.From, r.Lane, r.Generation})
}

// UnmarshalJSON reads a whole entry; an unknown key is an error.
func (r *RolledBack) UnmarshalJSON(data []byte) error {
	var j rolledBackJSON
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*r = RolledBack{j.Version, j.Cause, j.At, time.Duration(j.Over), j.From, j.Lane, j.Generation}
	return nil
}
