package canary

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicego/sluice/internal/jsontime"
)

// UpstreamsConfig is what an Upstreams chooses from, as plain data: start from
// DefaultUpstreamsConfig, because it is taken literally and the zero UpstreamsConfig does
// not validate.
//
// In JSON the keys are in snake case, and decoding goes over what was there: absent keys
// keep their value, the list is replaced whole, an unknown key is an error.
type UpstreamsConfig struct {
	// LoadFactor is how many times its share of what is under way an instance may have.
	LoadFactor float64 `json:"load_factor"`
	// Upstreams are the instances, at most 1024. Their order does not matter.
	Upstreams []UpstreamConfig `json:"upstreams"`
}

// UpstreamConfig is one instance.
type UpstreamConfig struct {
	// Name is what ids are matched with, such as "10.0.0.1:8080".
	Name string `json:"name"`
	// Weight is its share beside the weights of the others, at most 1000; 0 is nothing. In
	// JSON a weight that is absent is 1.
	Weight int `json:"weight"`
}

// DefaultUpstreamsConfig returns: no instances, each of which may have a quarter more than
// its share.
func DefaultUpstreamsConfig() UpstreamsConfig { return UpstreamsConfig{LoadFactor: 1.25} }

// Clone returns a copy that shares nothing with c.
func (c UpstreamsConfig) Clone() UpstreamsConfig {
	c.Upstreams = slices.Clone(c.Upstreams)
	return c
}

// Validate returns all that is wrong with c, each complaint with the field, its value
// and what is wanted, joined; nil if nothing is.
func (c UpstreamsConfig) Validate() error {
	var v complaints
	v.unless(c.LoadFactor >= 1.01 && c.LoadFactor <= 1000, "LoadFactor %v is not in [1.01, 1000]", c.LoadFactor) // also catches NaN
	v.unless(len(c.Upstreams) <= maxUpstreams, "%d Upstreams are more than %d", len(c.Upstreams), maxUpstreams)
	seen := map[string]bool{}
	for i, n := range c.Upstreams {
		v.name(fmt.Sprintf("Upstreams[%d].Name", i), n.Name)
		v.unless(!seen[n.Name], "Upstreams[%d].Name %q stands there twice", i, n.Name)
		v.unless(n.Weight >= 0 && n.Weight <= maxUpstreamWeight, "Upstreams[%d].Weight %d is not in [0, %d]", i, n.Weight, maxUpstreamWeight)
		seen[n.Name] = true
	}
	return errors.Join(v...)
}

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is an
// error. It does not validate; c is as before when it returns an error.
func (c *UpstreamsConfig) UnmarshalJSON(data []byte) error {
	type plain UpstreamsConfig
	j := plain{LoadFactor: c.LoadFactor}
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	if j.Upstreams == nil {
		j.Upstreams = c.Upstreams
	}
	*c = UpstreamsConfig(j)
	return nil
}

// UnmarshalJSON decodes an instance, whose weight is 1 if it is absent; an unknown key is
// an error.
func (c *UpstreamConfig) UnmarshalJSON(data []byte) error {
	type plain UpstreamConfig
	j := plain{Weight: 1}
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = UpstreamConfig(j)
	return nil
}

// MarshalJSON writes every key; no instances are an empty list.
func (c UpstreamsConfig) MarshalJSON() ([]byte, error) {
	type plain UpstreamsConfig
	if c.Upstreams == nil {
		c.Upstreams = []UpstreamConfig{}
	}
	return json.Marshal(plain(c))
}
