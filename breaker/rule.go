package breaker

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// Kind is what a Rule looks at.
type Kind uint8

const (
	// SlowCallRatio trips when the share of slow calls reaches Rule.Ratio.
	SlowCallRatio Kind = iota + 1
	// ErrorRatio trips when the share of failures reaches Rule.Ratio.
	ErrorRatio
	// ErrorCount trips at the Rule.Count-th failure in the window.
	ErrorCount
	// ConsecutiveFailures trips at Rule.Count failures with no success between,
	// however long they take to come.
	ConsecutiveFailures
)

var kindNames = [...]string{SlowCallRatio: "slow_call_ratio", ErrorRatio: "error_ratio", ErrorCount: "error_count", ConsecutiveFailures: "consecutive_failures"}

// String returns the kind as it is written in JSON, such as "error_ratio".
func (k Kind) String() string {
	if k >= 1 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// MarshalText returns the text of String.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText accepts what String returns for the kinds there are.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, name := range kindNames {
		if i > 0 && name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("breaker: kind %q is not one of %s", text, strings.Join(kindNames[1:], ", "))
}

// Rule is one reason to trip. A breaker has one or more, and any of them trips.
// Fields that a kind does not use must be zero; MinRequests, Over and OpenFor are
// optional, and zero takes the breaker's own.
type Rule struct {
	Kind Kind
	// Ratio in [0.000001, 1] is where a ratio rule trips: at it, not beyond. It is
	// exact to a millionth.
	Ratio float64
	// SlowerThan is the limit of a SlowCallRatio: a call is slow when it took
	// longer. It must be positive.
	SlowerThan time.Duration
	// Count is how many failures trip an ErrorCount or ConsecutiveFailures.
	Count int
	// MinRequests is this ratio rule's own gate. Count rules have no gate: a count
	// of n trips at the n-th failure whatever the total.
	MinRequests int
	// Over is this rule's own time window. It has as many buckets as the
	// breaker's. ConsecutiveFailures looks at no window and takes none.
	Over time.Duration
	// OpenFor is how long the breaker opens when this rule trips it.
	OpenFor time.Duration
}

// String says the rule in a few words, such as "slow_call_ratio 0.5 over 800ms".
func (r Rule) String() string {
	switch r.Kind {
	case SlowCallRatio:
		return fmt.Sprintf("%v %v over %v", r.Kind, r.Ratio, r.SlowerThan)
	case ErrorRatio:
		return fmt.Sprintf("%v %v", r.Kind, r.Ratio)
	}
	return fmt.Sprintf("%v %d", r.Kind, r.Count)
}

// ruleJSON is Rule as JSON has it.
type ruleJSON struct {
	Kind        Kind              `json:"kind"`
	Ratio       float64           `json:"ratio,omitempty"`
	SlowerThan  jsontime.Duration `json:"slower_than,omitempty"`
	Count       int               `json:"count,omitempty"`
	MinRequests int               `json:"min_requests,omitempty"`
	Over        jsontime.Duration `json:"over,omitempty"`
	OpenFor     jsontime.Duration `json:"open_for,omitempty"`
}

// MarshalJSON writes durations as text, and leaves out what is zero.
func (r Rule) MarshalJSON() ([]byte, error) {
	return json.Marshal(ruleJSON{r.Kind, r.Ratio, jsontime.Duration(r.SlowerThan), r.Count, r.MinRequests, jsontime.Duration(r.Over), jsontime.Duration(r.OpenFor)})
}

// UnmarshalJSON decodes over r: absent keys keep what was there, unknown ones are
// an error.
func (r *Rule) UnmarshalJSON(data []byte) error {
	j := ruleJSON{r.Kind, r.Ratio, jsontime.Duration(r.SlowerThan), r.Count, r.MinRequests, jsontime.Duration(r.Over), jsontime.Duration(r.OpenFor)}
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*r = Rule{j.Kind, j.Ratio, time.Duration(j.SlowerThan), j.Count, j.MinRequests, time.Duration(j.Over), time.Duration(j.OpenFor)}
	return nil
}

// isRatio reports whether a gate applies to the rule.
func (k Kind) isRatio() bool { return k == SlowCallRatio || k == ErrorRatio }

// ruleLike returns the rule of c that equals r, or else the first that looks at the
// same thing and opens for another time; nil if there is none, or r is nil.
func (c *Config) ruleLike(r *Rule) (found *Rule) {
	for i := range c.Rules {
		have := &c.Rules[i]
		if r == nil || have == r || *have == *r {
			return r
		}
		same := *have
		same.OpenFor = r.OpenFor
		if found == nil && same == *r {
			found = have
		}
	}
	return found
}
