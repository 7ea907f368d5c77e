package ratelimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/sluicego/sluice/internal/jsontime"
)

const (
	// maxKeys is what a table can be made for: 2 GiB.
	maxKeys = 100_000_000
	// maxClasses is how many classes a Keyed can have, together with those it had.
	maxClasses = 100
	maxTop     = 10_000
)

// KeyedConfig is what a Keyed decides on, as plain data: start from DefaultKeyedConfig
// and set Rate, because a KeyedConfig is taken literally and the zero one does not
// validate.
//
// In JSON the keys are in snake case, rates are text such as "100/s", and decoding goes
// over what was there: absent keys keep their value, Classes is replaced whole, an
// unknown key is an error.
type KeyedConfig struct {
	// Rate is how fast tokens come for each key.
	Rate Rate
	// Burst is how many tokens a key can have, and so the most that can be taken at once.
	// It must fill within 2 years. Auto is as many as come in Rate.Per.
	Burst int64
	// MaxDebt is how many tokens of a key Debit may take that are not there. Auto is
	// Burst.
	MaxDebt int64
	// Classes are limits of their own for the keys that are asked for by Keyed.Class.
	Classes []KeyClass
	// MaxKeys is how many keys the table is made for. It does not change while the Keyed
	// lives.
	MaxKeys int
	// WhenFull says what becomes of a key that finds no free slot.
	WhenFull WhenFull
	// TopRejected, if not 0, is how many of the keys that are refused most are kept track
	// of by name, for Keyed.TopRejected. It does not change while the Keyed lives.
	TopRejected int
}

// KeyClass is the limit of a class of keys, such as the users of a plan. Burst and
// MaxDebt may be Auto, as in KeyedConfig.
type KeyClass struct {
	Name    string
	Rate    Rate
	Burst   int64
	MaxDebt int64
}

// WhenFull says what becomes of a new key when all slots where it may be are taken by
// keys whose buckets are not full.
type WhenFull uint8

const (
	// EvictLeastDebt gives the new key the slot of the key that would be full soonest;
	// that key begins anew when it comes again.
	EvictLeastDebt WhenFull = iota + 1
	// DenyNew refuses new keys, so that no flood of keys makes one forget that it is over
	// its limit.
	DenyNew
	// OverflowKey lets the keys of a class that find no slot share one bucket.
	OverflowKey
)

var whenFullNames = [...]string{"", "evict_least_debt", "deny_new", "overflow_key"}

// String returns "evict_least_debt", "deny_new" or "overflow_key".
func (w WhenFull) String() string {
	if w < EvictLeastDebt || w > OverflowKey {
		return fmt.Sprintf("WhenFull(%d)", uint8(w))
	}
	return whenFullNames[w]
}

// MarshalText returns the text of String.
func (w WhenFull) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads what String returns.
func (w *WhenFull) UnmarshalText(text []byte) error {
	i := slices.Index(whenFullNames[1:], string(text))
	if i < 0 {
		return fmt.Errorf("%.64q is not one of evict_least_debt, deny_new, overflow_key", text)
	}
	*w = WhenFull(i + 1)
	return nil
}

// DefaultKeyedConfig returns a KeyedConfig without a Rate, for 65 536 keys: as many
// tokens as come in the rate's Per can be taken at once, and a key that finds no slot
// takes that of the key that would be full soonest.
func DefaultKeyedConfig() KeyedConfig {
	return KeyedConfig{Burst: Auto, MaxDebt: Auto, MaxKeys: 1 << 16, WhenFull: EvictLeastDebt}
}

// Validate returns all that is wrong with c, each complaint with the field, its value
// and what is wanted, joined; nil if nothing is.
func (c KeyedConfig) Validate() error {
	var v complaints
	v.limit("", c.Rate, c.Burst, c.MaxDebt)
	v.unless(len(c.Classes) <= maxClasses, "Classes has %d entries, more than %d", len(c.Classes), maxClasses)
	names := map[string]bool{}
	for i, class := range c.Classes {
		where := fmt.Sprintf("Classes[%d].", i)
		v.unless(class.Name != "", "%sName is empty", where)
		v.unless(!names[class.Name], "%sName %q stands there twice", where, class.Name)
		names[class.Name] = true
		v.limit(where, class.Rate, class.Burst, class.MaxDebt)
	}
	v.unless(c.MaxKeys >= 1 && c.MaxKeys <= maxKeys, "MaxKeys %d is not in [1, %d]", c.MaxKeys, maxKeys)
	v.unless(c.WhenFull >= EvictLeastDebt && c.WhenFull <= OverflowKey, "WhenFull %d is not one of evict_least_debt, deny_new, overflow_key", uint8(c.WhenFull))
	v.unless(c.TopRejected >= 0 && c.TopRejected <= maxTop, "TopRejected %d is not in [0, %d]", c.TopRejected, maxTop)
	return errors.Join(v...)
}

// limit complains of the limit of some keys.
func (v *complaints) limit(where string, r Rate, burst, debt int64) {
	if err := r.Validate(); err != nil {
		if where != "" {
			err = fmt.Errorf("ratelimit: %sRate: %w", where, err)
		}
		*v = append(*v, err)
		return
	}
	v.fill(where+"Burst", burst, 1, r)
	v.fill(where+"MaxDebt", debt, 0, r)
}

// Clone returns a copy that shares nothing with c.
func (c KeyedConfig) Clone() KeyedConfig {
	c.Classes = slices.Clone(c.Classes)
	return c
}

// Equal reports whether c and d decide the same.
func (c KeyedConfig) Equal(d KeyedConfig) bool {
	same := slices.Equal(c.Classes, d.Classes)
	c.Classes, d.Classes = nil, nil
	return same && reflect.DeepEqual(c, d)
}

// limitOf is the limit of the keys of a class; "" and classes that there are not have
// the limit of all keys.
func (c *KeyedConfig) limitOf(class string) Config {
	limit := Config{Rate: c.Rate, Burst: c.Burst, Initial: Auto, MaxWait: Auto, MaxDebt: c.MaxDebt}
	for _, own := range c.Classes {
		if own.Name == class {
			limit.Rate, limit.Burst, limit.MaxDebt = own.Rate, own.Burst, own.MaxDebt
		}
	}
	return limit
}

// keyedConfigJSON is KeyedConfig as JSON has it.
type keyedConfigJSON struct {
	Rate        Rate       `json:"rate"`
	Burst       autoInt    `json:"burst"`
	MaxDebt     autoInt    `json:"max_debt"`
	Classes     []KeyClass `json:"classes"`
	MaxKeys     int        `json:"max_keys"`
	WhenFull    WhenFull   `json:"when_full"`
	TopRejected int        `json:"top_rejected"`
}

// MarshalJSON writes every key, rates as text.
func (c KeyedConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, Classes is replaced
// whole, an unknown key is an error. It does not validate more than each value by
// itself; c is as before when it returns an error.
func (c *KeyedConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	j.Classes = nil
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	if j.Classes == nil {
		j.Classes = c.Classes
	}
	*c = KeyedConfig{j.Rate, int64(j.Burst), int64(j.MaxDebt), j.Classes, j.MaxKeys, j.WhenFull, j.TopRejected}
	return nil
}

func (c KeyedConfig) toJSON() keyedConfigJSON {
	return keyedConfigJSON{c.Rate, autoInt(c.Burst), autoInt(c.MaxDebt), c.Classes, c.MaxKeys, c.WhenFull, c.TopRejected}
}

// keyClassJSON is KeyClass as JSON has it.
type keyClassJSON struct {
	Name    string  `json:"name"`
	Rate    Rate    `json:"rate"`
	Burst   autoInt `json:"burst"`
	MaxDebt autoInt `json:"max_debt"`
}

// MarshalJSON writes every key, the rate as text.
func (c KeyClass) MarshalJSON() ([]byte, error) {
	return json.Marshal(keyClassJSON{c.Name, c.Rate, autoInt(c.Burst), autoInt(c.MaxDebt)})
}

// UnmarshalJSON decodes a class; an absent burst or max_debt is "auto", an unknown key
// is an error.
func (c *KeyClass) UnmarshalJSON(data []byte) error {
	j := keyClassJSON{Burst: Auto, MaxDebt: Auto}
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = KeyClass{j.Name, j.Rate, int64(j.Burst), int64(j.MaxDebt)}
	return nil
}
