package metrics

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Kind tells how the values of a family behave over time. The zero Kind is
// none, and invalid.
type Kind uint8

const (
	// Counter values only grow while the process lives.
	Counter Kind = iota + 1
	// Gauge values go up and down.
	Gauge
)

// String returns "counter" or "gauge".
func (k Kind) String() string {
	switch k {
	case Counter:
		return "counter"
	case Gauge:
		return "gauge"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// MarshalText writes what String returns, and refuses a Kind that is none.
func (k Kind) MarshalText() ([]byte, error) {
	if k != Counter && k != Gauge {
		return nil, fmt.Errorf("metrics: kind %d is neither counter (1) nor gauge (2)", uint8(k))
	}
	return []byte(k.String()), nil
}

// A Desc describes a family of samples: what they mean and how they are told
// apart. A Source makes each of its Descs once and never changes it, so that an
// exporter may use the pointer as a key; two objects of one type share theirs,
// so that a family has one Help and one set of labels everywhere.
//
// Names are for every exporter, which adds its own prefix and suffix:
//
//   - snake_case of ASCII letters and digits, first the thing, then what of it:
//     breaker_state, breaker_transitions
//   - no prefix of the library and no _total at the end of a counter
//   - a counter is a plural (calls), a gauge is not (limit)
//   - the base unit ends the name where there is one: _seconds for "s", _bytes
//     for "By", _ratio (0 to 1, never percent) for "1"
//   - a unit that only says what is counted stands in braces and not in the
//     name: "{call}"; "" is no unit, as of a state that is 0 or 1
//   - labels are snake_case too, and of few values: the name of a guard or a
//     reason out of a list, never a user, an address or a URL
//
// The sum over all labels of a family should mean something.
type Desc struct {
	Name   string
	Help   string // one sentence, the same wherever the family appears
	Unit   string // UCUM: "s", "By", "1", "{call}", or ""
	Kind   Kind
	Labels []string
}

// Validate joins all complaints about what can be checked of these rules. It is
// for the tests of those who write a Source; no exporter needs to call it.
func (d *Desc) Validate() error {
	var errs []error
	complain := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("metrics: "+format, args...))
	}
	if !snake(d.Name) {
		complain("name %q is not snake_case", d.Name)
	}
	if strings.HasSuffix(d.Name, "_total") {
		complain("name %q ends in _total, which exporters add", d.Name)
	}
	for unit, suffix := range map[string]string{"s": "_seconds", "By": "_bytes", "1": "_ratio"} {
		if (d.Unit == unit) != strings.HasSuffix(d.Name, suffix) {
			complain("name %q and unit %q: unit %q and the ending %s belong together", d.Name, d.Unit, unit, suffix)
		}
	}
	if d.Help == "" {
		complain("help of %q is empty", d.Name)
	}
	if _, err := d.Kind.MarshalText(); err != nil {
		errs = append(errs, err)
	}
	for i, label := range d.Labels {
		if !snake(label) {
			complain("label %q of %q is not snake_case", label, d.Name)
		}
		if slices.Contains(d.Labels[:i], label) {
			complain("label %q of %q stands there twice", label, d.Name)
		}
	}
	return errors.Join(errs...)
}

// snake reports whether s is words of a-z and 0-9 with one _ between them, the
// first beginning with a letter.
func snake(s string) bool {
	last := '_'
	for i, r := range s {
		letter, digit := 'a' <= r && r <= 'z', '0' <= r && r <= '9'
		if !letter && (i == 0 || !digit) && (r != '_' || last == '_') {
			return false
		}
		last = r
	}
	return last != '_'
}
