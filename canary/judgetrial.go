package canary

import "errors"

// A Trial says who is compared: what a Judge needs to know of a step.
type Trial struct {
	Canary string `json:"canary"`
	Stable string `json:"stable"`
	// CanaryWeight and StableWeight are the shares of all users that the two have.
	CanaryWeight Weight `json:"canary_weight"`
	StableWeight Weight `json:"stable_weight"`
	// Generation is that of the plan in which they have them first. Results of calls that
	// an older one decided on belong to the step before.
	Generation uint64 `json:"generation"`
}

// Validate returns all that is wrong with t, joined; nil if nothing is.
func (t Trial) Validate() error {
	var v complaints
	v.unless(t.Canary != "", "Canary is empty")
	v.unless(t.Stable != "", "Stable is empty")
	v.unless(t.Canary == "" || t.Canary != t.Stable, "Canary and Stable are both %q", t.Canary)
	errs := append(v, t.CanaryWeight.Validate(), t.StableWeight.Validate())
	if t.CanaryWeight <= All && t.StableWeight <= All {
		var w complaints
		w.unless(t.CanaryWeight > 0, "CanaryWeight %v is not above 0%%", t.CanaryWeight)
		w.unless(t.CanaryWeight+t.StableWeight <= All, "CanaryWeight %v and StableWeight %v are more than 100%% together", t.CanaryWeight, t.StableWeight)
		errs = append(errs, w...)
	}
	return errors.Join(errs...)
}

// share is the canary's share of the users of both.
func (t Trial) share() float64 {
	return float64(t.CanaryWeight) / float64(t.CanaryWeight+t.StableWeight)
}
