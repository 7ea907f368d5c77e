package canary

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluicego/sluice/internal/clock"
)

// Verdict returns what is to be said of the canary now. It depends on nothing but what
// was observed, and how long the step has lasted: the same calls give the same verdict.
// Without a step under way it is the zero Verdict.
//
// It also works out what is slow, so without a Controller ask it every second or so.
func (j *Judge) Verdict() Verdict {
	if j == nil {
		return Verdict{}
	}
	return j.verdict(clock.Now())
}

func (j *Judge) verdict(now int64) Verdict {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tune(now)
	s := j.stage.Load()
	if s == nil {
		return Verdict{}
	}
	if j.failed != nil {
		v := *j.failed
		v.Evidence = slices.Clone(v.Evidence)
		return v
	}
	f := j.findings(s)
	f.warm = now >= s.warmUntil
	v := f.verdict()
	if v.Result == Fail {
		kept := v
		kept.Evidence = slices.Clone(v.Evidence)
		j.failed = &kept
	}
	return v
}

// findings are what a verdict follows from.
type findings struct {
	config         *JudgeConfig
	trial          Trial
	warm           bool
	canary, stable judgeTally
	failing        [judgeMetrics]int64   // users of the canary who failed, in the step with the most
	log            [judgeMetrics]float64 // of E
	own            [judgeMetrics]float64 // of this step's evidence, taken for itself
	ratio          [judgeMetrics]float64 // at most
	share          [judgeMetrics]float64 // at most
	sampleLog      float64
}

func (j *Judge) findings(s *judgeStage) *findings {
	c := j.config.Load()
	f := &findings{config: c, trial: s.Trial, canary: s.canary.read(), stable: s.stable.read()}
	p, prev := s.share(), s.prev.Load()
	for m := range f.log {
		f.log[m] = j.past[m]
		if f.failing[m] = f.canary.bad[m]; prev != nil {
			f.log[m] = max(f.log[m], prev.evidence(m))
			f.failing[m] = max(f.failing[m], prev.canary.bad[m].Load())
		}
		f.own[m] = evidenceOf(f.canary.bad[m], f.stable.bad[m], p)
		f.log[m] = max(f.log[m], f.own[m]-s.allowance())
		f.ratio[m] = ratioAtMost(f.canary.bad[m], f.stable.bad[m], p, c.PassAlpha)
		f.share[m] = atMost(f.canary.bad[m], f.canary.users, c.PassAlpha)
	}
	f.sampleLog = mismatch(f.canary.users, f.stable.users, p)
	return f
}

// evidence is the logarithm of the stage's evidence in metric m, as it counts beside that
// of the other steps.
func (s *judgeStage) evidence(m int) float64 {
	return evidenceOf(s.canary.bad[m].Load(), s.stable.bad[m].Load(), s.share()) - s.allowance()
}

// allowance is what the evidence of a step must have more than that of an only one: the
// n-th of them gets 1/(n·(n+1)) of alpha, and all together no more than alpha. Steps are
// not independent, since who is out of luck with both versions is so in each of them; so
// nothing may be multiplied.
func (s *judgeStage) allowance() float64 {
	n := float64(s.number)
	return math.Log(n * (n + 1))
}

func evidenceOf(x, y int64, p float64) float64 {
	var e eprocess
	e.add(x, y, p)
	return e.log()
}

// verdict puts the findings into words.
func (f *findings) verdict() Verdict {
	v := Verdict{
		Trial:      f.trial,
		CanarySeen: f.canary.shown(f.trial.CanaryWeight),
		StableSeen: f.stable.shown(f.trial.StableWeight),
		SampleE:    eValue(f.sampleLog),
	}
	for m := range f.log {
		e := Evidence{
			Metric: JudgeMetric(m + 1), E: eValue(f.log[m]),
			Canary: f.canary.bad[m], Stable: f.stable.bad[m], ShareAtMost: f.share[m],
		}
		if !math.IsInf(f.ratio[m], 1) {
			e.RatioAtMost = f.ratio[m]
		}
		v.Evidence = append(v.Evidence, e)
	}
	v.Result, v.Metric, v.Reason = f.decide()
	return v
}

// decide is the whole of the judgement, the worst first.
func (f *findings) decide() (VerdictResult, JudgeMetric, string) {
	for m, log := range f.log {
		if log >= -math.Log(f.config.Alpha) && f.failing[m] >= int64(f.config.MinFailing) {
			return Fail, JudgeMetric(m + 1), fmt.Sprintf("%v: evidence %.4g, and %.4g condemns: %d users of the canary and %d of stable in this step",
				JudgeMetric(m+1), eValue(log), 1/f.config.Alpha, f.canary.bad[m], f.stable.bad[m])
		}
	}
	if r, reason := f.rail(); r != 0 {
		return r, Errors, reason
	}
	switch c := f.config; {
	case f.canary.requests == 0:
		return NoData, 0, "no call of the canary was seen"
	case f.sampleLog >= -math.Log(c.SampleAlpha):
		return Inconclusive, 0, fmt.Sprintf("sample ratio: %d users of the canary and %d of stable do not come of the shares %v and %v",
			f.canary.users, f.stable.users, f.trial.CanaryWeight, f.trial.StableWeight)
	case !f.warm:
		return Inconclusive, 0, "the step is warming up"
	case f.canary.users < int64(c.MinUsers):
		return Inconclusive, 0, fmt.Sprintf("%d of %d users of the canary were seen", f.canary.users, c.MinUsers)
	case f.canary.requests < int64(c.MinRequests):
		return Inconclusive, 0, fmt.Sprintf("%d of %d calls of the canary were seen", f.canary.requests, c.MinRequests)
	}
	for m, log := range f.own {
		if log >= -math.Log(f.config.PassAlpha) {
			return Inconclusive, JudgeMetric(m + 1), fmt.Sprintf("%v: evidence %.3g is too much to go on and too little to condemn", JudgeMetric(m+1), eValue(log))
		}
		if f.ratio[m] >= 1+f.config.Margin && f.share[m] >= f.config.Tolerance {
			reason := fmt.Sprintf("%v: up to %.3g %% of the canary's users may fail", JudgeMetric(m+1), 100*f.share[m])
			if !math.IsInf(f.ratio[m], 1) {
				reason += fmt.Sprintf(", %.3g times as often as stable's", f.ratio[m])
			}
			return Inconclusive, JudgeMetric(m + 1), reason
		}
	}
	return Pass, 0, fmt.Sprintf("%d users of the canary in %d calls, %d of them failing",
		f.canary.estimate(f.trial.CanaryWeight), f.canary.requests, f.canary.bad[0])
}

// rail judges by the rate of errors alone: a canary that is above MaxErrorRate for sure,
// in calls and in users, fails unless stable may be as bad. Calls tell of what happens
// when every user has failed once already; users of whether it is more than a few.
func (f *findings) rail() (VerdictResult, string) {
	c := f.config
	if f.canary.requests < int64(c.MinRequests) || f.canary.bad[0] < int64(c.MinFailing) {
		return 0, ""
	}
	rate := atLeast(f.canary.failures, f.canary.requests, c.Alpha)
	if rate <= c.MaxErrorRate || atLeast(f.canary.bad[0], f.canary.users, c.Alpha) <= c.MaxErrorRate {
		return 0, ""
	}
	seen := fmt.Sprintf("%d of %d calls of the canary failed", f.canary.failures, f.canary.requests)
	if f.stable.requests >= int64(c.MinRequests) && atMost(f.stable.failures, f.stable.requests, c.Alpha) >= rate {
		return Inconclusive, fmt.Sprintf("%s, and %d of %d of stable's: what both depend on is to blame", seen, f.stable.failures, f.stable.requests)
	}
	return Fail, fmt.Sprintf("%s, more than %.3g %% for sure", seen, 100*c.MaxErrorRate)
}

// shown is the tally for people; the version had so much of all users.
func (n judgeTally) shown(w Weight) SideCounts {
	return SideCounts{Requests: n.requests, Failures: n.failures, Refused: n.refused, Users: n.estimate(w), Places: n.users}
}

// estimate is how many users there were; none who did not call.
func (n judgeTally) estimate(w Weight) int64 { return min(linearCount(n.users, int64(w)), n.requests) }
