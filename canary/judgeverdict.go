package canary

import "fmt"

// VerdictResult is what a Judge says of a canary.
type VerdictResult uint8

const (
	// NoData: in this step nothing was seen of the canary. That is no failure and no
	// success.
	NoData VerdictResult = iota + 1
	// Inconclusive: not enough was seen, or what was seen does not allow to go on.
	Inconclusive
	// Pass: as far as the evidence goes, the canary is as good as stable.
	Pass
	// Fail: the canary is worse. It stays condemned until Reset.
	Fail
)

var verdictNames = [...]string{NoData: "no_data", Inconclusive: "inconclusive", Pass: "pass", Fail: "fail"}

// String returns the result in lower case, "none" for the zero value, which is that of a
// Judge without a step.
func (r VerdictResult) String() string {
	switch {
	case r == 0:
		return "none"
	case int(r) < len(verdictNames):
		return verdictNames[r]
	}
	return fmt.Sprintf("VerdictResult(%d)", uint8(r))
}

// MarshalText returns the text of String.
func (r VerdictResult) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// JudgeMetric is one thing in which versions are compared.
type JudgeMetric uint8

const (
	// Errors: users for whom a call failed.
	Errors JudgeMetric = iota + 1
	// SlowCalls: users for whom a call was slow.
	SlowCalls
	// Panics: users for whom a call panicked.
	Panics
)

// judgeMetrics is how many there are.
const judgeMetrics = int(Panics)

var metricNames = [...]string{Errors: "errors", SlowCalls: "slow_calls", Panics: "panics"}

// String returns the metric in lower case, "none" for the zero value.
func (m JudgeMetric) String() string {
	switch {
	case m == 0:
		return "none"
	case int(m) <= judgeMetrics:
		return metricNames[m]
	}
	return fmt.Sprintf("JudgeMetric(%d)", uint8(m))
}

// MarshalText returns the text of String.
func (m JudgeMetric) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// A Verdict is what a Judge says of the canary at one moment, with the numbers behind it.
type Verdict struct {
	Result VerdictResult `json:"result"`
	// Metric is what a Fail, or an Inconclusive for one metric's sake, is about; 0
	// otherwise.
	Metric JudgeMetric `json:"metric,omitempty"`
	// Reason says in words and numbers why.
	Reason string `json:"reason"`
	// Trial is the step.
	Trial Trial `json:"trial"`
	// CanarySeen and StableSeen are what was seen of the two in this step.
	CanarySeen SideCounts `json:"canary_seen"`
	StableSeen SideCounts `json:"stable_seen"`
	// Evidence has each metric.
	Evidence []Evidence `json:"evidence"`
	// SampleE is the evidence that the users do not come by the shares: a fault in the
	// routing, a cached cookie, calls that end before they are counted.
	SampleE float64 `json:"sample_e"`
}

// SideCounts is what was seen of one version in one step.
type SideCounts struct {
	Requests int64 `json:"requests"`
	// Failures are calls; Refused are those of them that the version's own breaker or
	// bulkhead refused.
	Failures int64 `json:"failures"`
	Refused  int64 `json:"refused"`
	// Users is an estimate (linear counting), exact while they are few. Places is how many
	// points were seen, which is what is compared.
	Users  int64 `json:"users"`
	Places int64 `json:"places"`
}

// Evidence is how a canary compares in one metric.
type Evidence struct {
	Metric JudgeMetric `json:"metric"`
	// E is the evidence that the canary is worse, of that step which has the most: 1 is
	// none. It exceeds 1/α with a probability of at most α, in however many steps, if the
	// canary is not worse.
	E float64 `json:"e"`
	// Canary and Stable are the users who failed in this step, each counted once.
	Canary int64 `json:"canary"`
	Stable int64 `json:"stable"`
	// RatioAtMost is how many times as often as stable's the canary's users fail at most; 0
	// if nothing is known.
	RatioAtMost float64 `json:"ratio_at_most"`
	// ShareAtMost is the share of the canary's users who fail at most.
	ShareAtMost float64 `json:"share_at_most"`
}
