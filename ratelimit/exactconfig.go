package ratelimit

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// KeyedExactConfig is what a KeyedExact decides on, as plain data: start from
// DefaultKeyedExactConfig and set Rate, because it is taken literally and the zero one
// does not validate.
//
// In JSON the keys are in snake case, those of Config stand beside the others, and
// decoding goes over what was there: absent keys keep their value, Keys is replaced
// whole, an unknown key is an error.
type KeyedExactConfig struct {
	// Config is what each key has that is not in Keys.
	Config
	// Keys have a configuration of their own.
	Keys []KeyConfig
	// MaxKeys is how many keys are held. It does not change while the KeyedExact lives.
	MaxKeys int
}

// KeyConfig is the configuration of one key. In JSON its keys stand beside "key", and
// those that are absent are as in DefaultConfig.
type KeyConfig struct {
	Key string
	Config
}

// DefaultKeyedExactConfig returns a KeyedExactConfig without a Rate: DefaultConfig for at
// most 1 024 keys.
func DefaultKeyedExactConfig() KeyedExactConfig {
	return KeyedExactConfig{Config: DefaultConfig(), MaxKeys: 1024}
}

// Validate returns all that is wrong with c, each complaint with the field, its value
// and what is wanted, joined; nil if nothing is.
func (c KeyedExactConfig) Validate() error {
	v := complaints{c.Config.Validate()}
	keys := map[string]bool{}
	for i, own := range c.Keys {
		v.unless(!keys[own.Key], "Keys[%d].Key %q stands there twice", i, own.Key)
		keys[own.Key] = true
		if err := own.Config.Validate(); err != nil {
			v.add("Keys[%d], of %q: %w", i, own.Key, err)
		}
	}
	v.unless(c.MaxKeys >= 1, "MaxKeys %d is not positive", c.MaxKeys)
	return errors.Join(v...)
}

// Clone returns a copy that shares nothing with c.
func (c KeyedExactConfig) Clone() KeyedExactConfig {
	c.Keys = slices.Clone(c.Keys)
	return c
}

// Equal reports whether c and d decide the same.
func (c KeyedExactConfig) Equal(d KeyedExactConfig) bool {
	return c.Config == d.Config && c.MaxKeys == d.MaxKeys && slices.Equal(c.Keys, d.Keys)
}

// keyedExactConfigJSON is KeyedExactConfig as JSON has it.
type keyedExactConfigJSON struct {
	configJSON
	Keys    []KeyConfig `json:"keys"`
	MaxKeys int         `json:"max_keys"`
}

// MarshalJSON writes every key, rates and durations as text.
func (c KeyedExactConfig) MarshalJSON() ([]byte, error) {
	return json.Marshal(keyedExactConfigJSON{c.Config.toJSON(), c.Keys, c.MaxKeys})
}

// UnmarshalJSON decodes over c: absent keys keep what was there, Keys is replaced whole,
// an unknown key is an error. It does not validate more than each value by itself; c is
// as before when it returns an error.
func (c *KeyedExactConfig) UnmarshalJSON(data []byte) error {
	j := keyedExactConfigJSON{c.Config.toJSON(), nil, c.MaxKeys}
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	if j.Keys == nil {
		j.Keys = c.Keys
	}
	*c = KeyedExactConfig{j.configJSON.config(), j.Keys, j.MaxKeys}
	return nil
}

// keyConfigJSON is KeyConfig as JSON has it.
type keyConfigJSON struct {
	Key string `json:"key"`
	configJSON
}

// MarshalJSON writes every key, rates and durations as text.
func (c KeyConfig) MarshalJSON() ([]byte, error) {
	return json.Marshal(keyConfigJSON{c.Key, c.Config.toJSON()})
}

// UnmarshalJSON decodes over DefaultConfig; an unknown key is an error.
func (c *KeyConfig) UnmarshalJSON(data []byte) error {
	j := keyConfigJSON{configJSON: DefaultConfig().toJSON()}
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = KeyConfig{j.Key, j.configJSON.config()}
	return nil
}

func (j configJSON) config() Config {
	return Config{j.Rate, int64(j.Burst), int64(j.Initial), time.Duration(j.MaxWait), j.MaxWaiters, int64(j.MaxDebt)}
}
