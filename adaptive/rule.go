package adaptive

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// A Rule names one of the package's estimators, as plain data: by what rule the
// limit of a Timeout follows how long calls take. Make one with FalseTimeouts,
// MeanMultiple, Quantile, RFC6298 or Fixed.
type Rule struct {
	Kind RuleKind
	// FalseTimeouts, of KindFalseTimeouts only, is the share of calls that may be cut
	// off although they would have been answered within Max. In [0.000001, 0.5].
	FalseTimeouts float64
	// Multiple, of KindMeanMultiple and KindQuantile, is what the mean or quantile is
	// multiplied by. In [1, 1000].
	Multiple float64
	// Calls, of KindMeanMultiple only, is how many calls the mean is taken over. In
	// [1, 10 000].
	Calls int
	// Quantile, of KindQuantile only. In [0.5, 0.999999].
	Quantile float64
	// Limit, of KindFixed only.
	Limit time.Duration
}

// RuleKind is what a Rule goes by.
type RuleKind uint8

const (
	// KindFalseTimeouts is the default, see FalseTimeouts.
	KindFalseTimeouts RuleKind = iota + 1
	// KindMeanMultiple: see MeanMultiple.
	KindMeanMultiple
	// KindQuantile: see Quantile.
	KindQuantile
	// KindRFC6298: see RFC6298.
	KindRFC6298
	// KindFixed: see Fixed.
	KindFixed
)

var ruleKindNames = [...]string{"false_timeouts", "mean_multiple", "quantile", "rfc6298", "fixed"}

// String returns the kind in snake case.
func (k RuleKind) String() string {
	if k >= KindFalseTimeouts && k <= KindFixed {
		return ruleKindNames[k-1]
	}
	return fmt.Sprintf("RuleKind(%d)", uint8(k))
}

// MarshalText returns the text of String, for JSON and logs.
func (k RuleKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (k *RuleKind) UnmarshalText(text []byte) error {
	for i, name := range ruleKindNames {
		if string(text) == name {
			*k = RuleKind(i + 1)
			return nil
		}
	}
	return fmt.Errorf("%q is not one of %s", text, strings.Join(ruleKindNames[:], ", "))
}

// FalseTimeouts aims at cutting off no more than this share of the calls that would
// have been answered within Max. It is the default, with 0.001, and the only one
// that tells a slow dependency from a dead one. See the package's documentation.
func FalseTimeouts(share float64) Rule { return Rule{Kind: KindFalseTimeouts, FalseTimeouts: share} }

// MeanMultiple makes the limit k times the mean of the last 100 calls. A call that
// was cut off counts with the time it had and is not divided by (the mean of an
// exponential distribution when some values are censored; Epstein, Sobel: "Life
// Testing", 1953), so the limit can grow when calls time out. It cuts off all slow
// calls of a dependency that is mostly fast, and does not know an outage: while
// everything hangs, it becomes Max.
func MeanMultiple(k float64) Rule { return Rule{Kind: KindMeanMultiple, Multiple: k, Calls: 100} }

// Quantile makes the limit k times the time within which a share q of the calls
// finishes, lately: 2 times the 99th percentile is a usual choice. Where q lies
// beyond the calls that were cut off, the limit doubles until it does not. It does
// not know an outage: while everything hangs, it becomes Max.
func Quantile(q, k float64) Rule { return Rule{Kind: KindQuantile, Quantile: q, Multiple: k} }

// RFC6298 makes the limit the smoothed time of a call and four times its smoothed
// deviation, as TCP does for retransmissions, and doubles it when a call that had
// all of it timed out, until one finishes. It remembers some eight calls and cuts
// off several of a hundred, which is right where a call that was cut off is simply
// sent again. While everything hangs, it becomes Max.
func RFC6298() Rule { return Rule{Kind: KindRFC6298} }

// Fixed makes the limit d, whatever happens. d must lie within the bounds.
func Fixed(d time.Duration) Rule { return Rule{Kind: KindFixed, Limit: d} }

// String returns the rule as one would write it.
func (r Rule) String() string {
	switch r.Kind {
	case KindFalseTimeouts:
		return fmt.Sprintf("FalseTimeouts(%v)", r.FalseTimeouts)
	case KindMeanMultiple:
		return fmt.Sprintf("MeanMultiple(%v) of %d calls", r.Multiple, r.Calls)
	case KindQuantile:
		return fmt.Sprintf("Quantile(%v, %v)", r.Quantile, r.Multiple)
	case KindRFC6298:
		return "RFC6298()"
	case KindFixed:
		return fmt.Sprintf("Fixed(%v)", r.Limit)
	}
	return r.Kind.String()
}

// ruleJSON is Rule as JSON has it.
type ruleJSON struct {
	Kind          RuleKind          `json:"kind"`
	FalseTimeouts float64           `json:"false_timeouts,omitempty"`
	Multiple      float64           `json:"multiple,omitempty"`
	Calls         int               `json:"calls,omitempty"`
	Quantile      float64           `json:"quantile,omitempty"`
	Limit         jsontime.Duration `json:"limit,omitempty"`
}

// MarshalJSON writes the kind and what belongs to it, durations as text.
func (r Rule) MarshalJSON() ([]byte, error) {
	return json.Marshal(ruleJSON{r.Kind, r.FalseTimeouts, r.Multiple, r.Calls, r.Quantile, jsontime.Duration(r.Limit)})
}

// UnmarshalJSON replaces r, except by null: since the fields belong to the kind, nothing
// is kept of what was there, except that mean_multiple without calls is of 100. An unknown
// key is an error.
func (r *Rule) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var j ruleJSON
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	if j.Kind == KindMeanMultiple && j.Calls == 0 {
		j.Calls = MeanMultiple(0).Calls
	}
	*r = Rule{j.Kind, j.FalseTimeouts, j.Multiple, j.Calls, j.Quantile, time.Duration(j.Limit)}
	return nil
}

// validate complains about what is wrong with the rule, within bounds.
func (r Rule) validate(v *complaints, b Bounds) {
	if r.Kind < KindFalseTimeouts || r.Kind > KindFixed {
		v.add("Rule.Kind %d is not one of %s", uint8(r.Kind), strings.Join(ruleKindNames[:], ", "))
		return
	}
	only := func(zero, belongs bool, field string, value any) bool {
		v.unless(zero || belongs, "Rule.%s %v has no meaning for %v", field, value, r.Kind)
		return belongs
	}
	mean, quantile := r.Kind == KindMeanMultiple, r.Kind == KindQuantile
	if only(r.FalseTimeouts == 0, r.Kind == KindFalseTimeouts, "FalseTimeouts", r.FalseTimeouts) {
		v.unless(r.FalseTimeouts >= 0.000001 && r.FalseTimeouts <= 0.5, "Rule.FalseTimeouts %v is not in [0.000001, 0.5]", r.FalseTimeouts)
	}
	if only(r.Multiple == 0, mean || quantile, "Multiple", r.Multiple) {
		v.unless(r.Multiple >= 1 && r.Multiple <= 1000, "Rule.Multiple %v is not in [1, 1000]", r.Multiple)
	}
	if only(r.Calls == 0, mean, "Calls", r.Calls) {
		v.unless(r.Calls >= 1 && r.Calls <= 10_000, "Rule.Calls %d is not in [1, 10000]", r.Calls)
	}
	if only(r.Quantile == 0, quantile, "Quantile", r.Quantile) {
		v.unless(r.Quantile >= 0.5 && r.Quantile <= 0.999999, "Rule.Quantile %v is not in [0.5, 0.999999]", r.Quantile)
	}
	if only(r.Limit == 0, r.Kind == KindFixed, "Limit", r.Limit) {
		v.unless(r.Limit > 0 && r.Limit >= b.Base && r.Limit <= b.Max, "Rule.Limit %v is not in [Base %v, Max %v]", r.Limit, b.Base, b.Max)
	}
}
