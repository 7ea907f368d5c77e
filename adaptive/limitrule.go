package adaptive

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// A LimitRule names one of the package's algorithms, as plain data: by what rule the
// limit of a Limiter follows its calls. Make one with Vegas, AIMD, Gradient2 or
// FixedLimit.
type LimitRule struct {
	Kind LimitKind
	// Tolerance is the share of calls that may be dropped (throttled or timed out) before
	// the limit becomes lower; of all kinds but LimitFixed. In [0, 0.5].
	Tolerance float64
	// MaxHealthy, if not 0, is how long calls take at most while all is well, on average.
	// AIMD takes slower ones for too many; Vegas and Gradient2 never get used to slower
	// ones. Of all kinds but LimitFixed. At most an hour.
	MaxHealthy time.Duration
	// Limit, of LimitFixed only.
	Limit int
}

// LimitKind is what a LimitRule goes by.
type LimitKind uint8

const (
	// LimitByVegas is the default, see Vegas.
	LimitByVegas LimitKind = iota + 1
	// LimitByAIMD: see AIMD.
	LimitByAIMD
	// LimitByGradient2: see Gradient2.
	LimitByGradient2
	// LimitFixed: see FixedLimit.
	LimitFixed
)

var limitKindNames = [...]string{"vegas", "aimd", "gradient2", "fixed"}

func (k LimitKind) known() bool { return k >= LimitByVegas && k <= LimitFixed }

// String returns the kind in lower case.
func (k LimitKind) String() string {
	if k.known() {
		return limitKindNames[k-1]
	}
	return fmt.Sprintf("LimitKind(%d)", uint8(k))
}

// MarshalText returns the text of String, for JSON and logs.
func (k LimitKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (k *LimitKind) UnmarshalText(text []byte) error {
	for i, name := range limitKindNames {
		if string(text) == name {
			*k = LimitKind(i + 1)
			return nil
		}
	}
	return fmt.Errorf("%q is not one of %s", text, strings.Join(limitKindNames[:], ", "))
}

// Vegas lets a few calls wait for others: as many as keep the dependency busy, and no
// more, by comparing how long calls take with how long they take when none waits. It
// finds that out again once a minute or so, under load by admitting fewer for two
// windows. It is the default, and right in front of a server: there, time is lost by
// waiting behind each other. Drops lower the limit as well, where they are more than
// 5 %.
func Vegas() LimitRule { return LimitRule{Kind: LimitByVegas, Tolerance: 0.05} }

// AIMD raises the limit by one each window until more than 1 % of the calls are dropped,
// or they take longer than maxHealthy on average (0: as long as they like), and then takes
// off a tenth, or up to half of it if most are dropped; until the first time it grows by
// half. It is right for a client whose dependency says that it has enough, or is mostly
// used by others: there, how long calls take says little about one's own. When it is
// alone with a dependency that never says so, maxHealthy decides how long all wait.
func AIMD(maxHealthy time.Duration) LimitRule {
	return LimitRule{Kind: LimitByAIMD, Tolerance: 0.01, MaxHealthy: maxHealthy}
}

// Gradient2 compares how long calls take with their average of many windows, and lets
// them be half as long again. It bears all that is short, and gets used to all that is
// long: in an overload that goes on, the limit and the waiting double every some minutes,
// unless MaxHealthy is set. It is here for those who know it.
func Gradient2() LimitRule { return LimitRule{Kind: LimitByGradient2, Tolerance: 0.05} }

// FixedLimit makes the limit n, whatever happens: for a test, or until one trusts the
// others. n must lie within the bounds.
func FixedLimit(n int) LimitRule { return LimitRule{Kind: LimitFixed, Limit: n} }

// String returns the rule as one would write it.
func (r LimitRule) String() string {
	switch {
	case r.Kind == LimitFixed:
		return fmt.Sprintf("FixedLimit(%d)", r.Limit)
	case r.Kind == LimitByAIMD:
		return fmt.Sprintf("AIMD(%v)", r.MaxHealthy)
	case r.Kind == LimitByVegas && r.MaxHealthy == 0:
		return "Vegas()"
	case r.Kind == LimitByVegas:
		return fmt.Sprintf("Vegas() below %v", r.MaxHealthy)
	case r.Kind == LimitByGradient2 && r.MaxHealthy == 0:
		return "Gradient2()"
	case r.Kind == LimitByGradient2:
		return fmt.Sprintf("Gradient2() below %v", r.MaxHealthy)
	}
	return r.Kind.String()
}

// limitRuleJSON is LimitRule as JSON has it. What is absent is as the function of the
// kind makes it.
type limitRuleJSON struct {
	Kind       LimitKind          `json:"kind"`
	Tolerance  *float64           `json:"tolerance,omitempty"`
	MaxHealthy *jsontime.Duration `json:"max_healthy,omitempty"`
	Limit      int                `json:"limit,omitempty"`
}

// MarshalJSON writes the kind and what belongs to it, durations as text.
func (r LimitRule) MarshalJSON() ([]byte, error) {
	j := limitRuleJSON{Kind: r.Kind, Limit: r.Limit}
	if r.Kind != LimitFixed || r.Tolerance != 0 {
		j.Tolerance = &r.Tolerance
	}
	if healthy := jsontime.Duration(r.MaxHealthy); healthy != 0 {
		j.MaxHealthy = &healthy
	}
	return json.Marshal(j)
}

// UnmarshalJSON replaces r, except by null: since the fields belong to the kind, nothing
// is kept of what was there. A tolerance that is absent is that of Vegas, AIMD or Gradient2. An unknown
// key is an error.
func (r *LimitRule) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var j limitRuleJSON
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	fresh := LimitRule{Kind: j.Kind, Limit: j.Limit}
	switch j.Kind {
	case LimitByVegas:
		fresh.Tolerance = Vegas().Tolerance
	case LimitByAIMD:
		fresh.Tolerance = AIMD(0).Tolerance
	case LimitByGradient2:
		fresh.Tolerance = Gradient2().Tolerance
	}
	if j.Tolerance != nil {
		fresh.Tolerance = *j.Tolerance
	}
	if j.MaxHealthy != nil {
		fresh.MaxHealthy = time.Duration(*j.MaxHealthy)
	}
	*r = fresh
	return nil
}

// validate complains about what is wrong with the rule, within bounds.
func (r LimitRule) validate(v *complaints, least, most int) {
	if !r.Kind.known() {
		v.add("Rule.Kind %d is not one of %s", uint8(r.Kind), strings.Join(limitKindNames[:], ", "))
		return
	}
	if r.Kind == LimitFixed {
		v.unless(r.Limit >= least && r.Limit <= most, "Rule.Limit %d is not in [Min %d, Max %d]", r.Limit, least, most)
		v.unless(r.Tolerance == 0, "Rule.Tolerance %v has no meaning for %v", r.Tolerance, r.Kind)
		v.unless(r.MaxHealthy == 0, "Rule.MaxHealthy %v has no meaning for %v", r.MaxHealthy, r.Kind)
		return
	}
	v.unless(r.Limit == 0, "Rule.Limit %d has no meaning for %v", r.Limit, r.Kind)
	v.unless(r.Tolerance >= 0 && r.Tolerance <= 0.5, "Rule.Tolerance %v is not in [0, 0.5]", r.Tolerance) // also catches NaN
	v.unless(r.MaxHealthy >= 0 && r.MaxHealthy <= time.Hour, "Rule.MaxHealthy %v is not in [0, %v]", r.MaxHealthy, time.Hour)
}
