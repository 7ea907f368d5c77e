package canary

import "github.com/sluicego/sluice/metrics"

var (
	descJudgeE       = metrics.Desc{Name: "canary_judge_e_value", Help: "Evidence that the canary is worse than stable, by metric; 1 is none.", Kind: metrics.Gauge, Labels: []string{"resource", "metric"}}
	descJudgeSample  = metrics.Desc{Name: "canary_judge_sample_e_value", Help: "Evidence that users do not come by the shares; 1 is none.", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descJudgeVerdict = metrics.Desc{Name: "canary_judge_verdict", Help: "1 for what is said of the canary, 0 for the rest.", Kind: metrics.Gauge, Labels: []string{"resource", "verdict"}}
	descJudgeUsers   = metrics.Desc{Name: "canary_judge_users", Help: "Users seen in this step, estimated.", Unit: "{user}", Kind: metrics.Gauge, Labels: []string{"resource", "version"}}
	descJudgeFailing = metrics.Desc{Name: "canary_judge_failing_users", Help: "Users who failed in this step, by metric; each counts once.", Unit: "{user}", Kind: metrics.Gauge, Labels: []string{"resource", "version", "metric"}}
	descJudgeStrays  = metrics.Desc{Name: "canary_judge_strays", Help: "Results that belong to no step.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
)

// Collect yields the Judge's figures, for metrics.Set. It asks for the Verdict; without a
// step under way there is little to tell.
func (j *Judge) Collect(yield func(metrics.Sample) bool) {
	if j == nil {
		return
	}
	s := j.Snapshot()
	show := func(desc *metrics.Desc, value float64, labels ...string) bool {
		return yield(metrics.Sample{Desc: desc, Labels: append([]string{j.name}, labels...), Value: value})
	}
	ok := show(&descJudgeStrays, float64(s.Strays))
	v := s.Verdict
	if v.Result == 0 {
		return
	}
	for r := NoData; r <= Fail; r++ {
		ok = ok && show(&descJudgeVerdict, indicator(r == v.Result), r.String())
	}
	ok = ok && show(&descJudgeSample, v.SampleE) &&
		show(&descJudgeUsers, float64(v.CanarySeen.Users), v.Trial.Canary) &&
		show(&descJudgeUsers, float64(v.StableSeen.Users), v.Trial.Stable)
	for _, e := range v.Evidence {
		metric := e.Metric.String()
		ok = ok && show(&descJudgeE, e.E, metric) &&
			show(&descJudgeFailing, float64(e.Canary), v.Trial.Canary, metric) &&
			show(&descJudgeFailing, float64(e.Stable), v.Trial.Stable, metric)
	}
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// View returns the JudgeSnapshot, for metrics.Set.
func (j *Judge) View() any { return j.Snapshot() }
