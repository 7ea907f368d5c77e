package canary

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/sluicego/sluice/internal/jsontime"
)

// Config is what a Picker splits by, as plain data: start from DefaultConfig, because
// a Config is taken literally and the zero Config does not validate.
//
// In JSON the keys are in snake case and weights are text such as "5%". Decoding goes
// over what was there: absent keys keep their value, the list of versions is replaced
// whole, an unknown key is an error.
type Config struct {
	// Stable is the version that serves whatever the others leave.
	Stable string
	// Versions are the others, each with its lane and its weight; together at most All.
	Versions []VersionConfig
	// Salt decides who lies where. Rollouts with the same salt see the same users
	// first; different salts are independent. "" is worked out: the Picker's name, "/"
	// and the stable version's name at the start of the rollout.
	Salt string
	// HashSpec is the version of the hash; 1 is the only one there is. A release that
	// brings another will not make it the default.
	HashSpec int
	// NoIdentity says who serves requests without an identity.
	NoIdentity NoIdentity
}

// VersionConfig is one version beside the stable one.
type VersionConfig struct {
	Name string
	// Lane is where the version's interval is anchored, in [0, MaxLanes); no two
	// versions share one. Lanes 0 and 1 never get into each other's way. Keep a
	// version's lane as long as it lives: its users are those next to its anchor.
	Lane int
	// Weight is its share. 0 is nobody.
	Weight Weight
}

// DefaultConfig returns: no version beside the stable one, which has yet to be named;
// a salt that is worked out; hash spec 1; chance for requests without an identity.
func DefaultConfig() Config { return Config{HashSpec: 1, NoIdentity: RandomVersion} }

// Clone returns a copy that shares nothing with c.
func (c Config) Clone() Config {
	c.Versions = slices.Clone(c.Versions)
	return c
}

// Equal reports whether c and d say the same. The order of versions does not matter:
// only lanes do.
func (c Config) Equal(d Config) bool {
	a, b := c.sorted(), d.sorted()
	return slices.Equal(a, b) && c.Stable == d.Stable && c.Salt == d.Salt && c.HashSpec == d.HashSpec && c.NoIdentity == d.NoIdentity
}

// sorted returns the versions by lane.
func (c Config) sorted() []VersionConfig {
	all := slices.Clone(c.Versions)
	slices.SortFunc(all, func(a, b VersionConfig) int { return a.Lane - b.Lane })
	return all
}

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c Config) Validate() error {
	if err := c.tooMany(); err != nil {
		return err // and none of them is compared with all others
	}
	var v complaints
	v.name("Stable", c.Stable)
	sum := Weight(0)
	for i, o := range c.Versions {
		field := fmt.Sprintf("Versions[%d]", i)
		v.name(field+".Name", o.Name)
		v.unless(o.Name != c.Stable || o.Name == "", "%s.Name %q is the stable version", field, o.Name)
		v.unless(o.Lane >= 0 && o.Lane < MaxLanes, "%s.Lane %d is not in [0, %d)", field, o.Lane, MaxLanes)
		for j, earlier := range c.Versions[:i] {
			v.unless(earlier.Name != o.Name, "%s.Name %q is that of Versions[%d] too", field, o.Name, j)
			v.unless(earlier.Lane != o.Lane, "%s.Lane %d is that of Versions[%d] too", field, o.Lane, j)
		}
		if err := o.Weight.Validate(); err != nil {
			v = append(v, fmt.Errorf("%w, as Weight of %s", err, field))
			continue
		}
		sum += o.Weight
	}
	v.unless(sum <= All, "Versions have weights of %d ppm together, more than 1000000", uint64(sum))
	v.unless(len(c.Salt) <= maxSalt, "Salt has %d bytes, more than %d", len(c.Salt), maxSalt)
	v.unless(c.HashSpec == 1, "HashSpec %d is not 1, the only one there is", c.HashSpec)
	v.unless(c.NoIdentity.known(), "NoIdentity %d is not one of %v, %v", uint8(c.NoIdentity), RandomVersion, StableVersion)
	return errors.Join(v...)
}

// tooMany complains about more versions than there are lanes.
func (c *Config) tooMany() error {
	if n := len(c.Versions); n > MaxLanes {
		return fmt.Errorf("canary: %d Versions are more than %d", n, MaxLanes)
	}
	return nil
}

const (
	maxName = 128
	maxSalt = 1024
	// maxPickerName is longer, since a Group puts its own before that of the route.
	maxPickerName = 2*maxName + 1
)

// complaints collects errors, each with the package's prefix.
type complaints []error

// unless adds the complaint if ok is false.
func (v *complaints) unless(ok bool, format string, args ...any) {
	if !ok {
		*v = append(*v, fmt.Errorf("canary: "+format, args...))
	}
}

// name complains about a name that cannot be a label, a header or part of a token.
func (v *complaints) name(field, name string) { v.named(field, name, maxName) }

// named is name for one of at most so many bytes.
func (v *complaints) named(field, name string, most int) {
	switch {
	case name == "":
		v.unless(false, "%s is empty", field)
	case len(name) > most:
		v.unless(false, "%s has %d bytes, more than %d", field, len(name), most)
	case !printable(name):
		v.unless(false, "%s %q has control characters or is not UTF-8", field, name)
	}
}

// printable reports whether s is UTF-8 without control characters.
func printable(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

// configJSON is Config as JSON has it.
type configJSON struct {
	Stable     string        `json:"stable"`
	Versions   []versionJSON `json:"versions"`
	Salt       string        `json:"salt"`
	HashSpec   int           `json:"hash_spec"`
	NoIdentity NoIdentity    `json:"no_identity"`
}

// versionJSON tells what is absent from what is 0.
type versionJSON struct {
	Name   *string `json:"name"`
	Lane   *int    `json:"lane"`
	Weight *Weight `json:"weight"`
}

// MarshalJSON writes every key, weights of 0 too.
func (c Config) MarshalJSON() ([]byte, error) {
	j := c.toJSON()
	j.Versions = make([]versionJSON, len(c.Versions))
	for i := range c.Versions {
		v := &c.Versions[i]
		j.Versions[i] = versionJSON{&v.Name, &v.Lane, &v.Weight}
	}
	return json.Marshal(j)
}

// UnmarshalJSON decodes over c: absent keys keep what was there, versions are
// replaced whole, an unknown key is an error, and so is a version that lacks one: a
// weight that is absent is not 0. It does not validate otherwise; c is as before when
// it returns an error.
func (c *Config) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	versions := c.Versions
	if j.Versions != nil {
		versions = make([]VersionConfig, len(j.Versions))
	}
	for i, v := range j.Versions {
		if v.Name == nil || v.Lane == nil || v.Weight == nil {
			return &jsontime.Error{Path: fmt.Sprintf("versions[%d]", i), Err: errors.New("a version has name, lane and weight, all of them")}
		}
		versions[i] = VersionConfig{*v.Name, *v.Lane, *v.Weight}
	}
	*c = Config{j.Stable, versions, j.Salt, j.HashSpec, j.NoIdentity}
	return nil
}

func (c Config) toJSON() configJSON {
	return configJSON{Stable: c.Stable, Salt: c.Salt, HashSpec: c.HashSpec, NoIdentity: c.NoIdentity}
}
