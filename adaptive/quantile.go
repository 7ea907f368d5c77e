package adaptive

// quantileMultiple is the estimator of Quantile.
type quantileMultiple struct {
	history
	growth
	rule Rule
}

func (m *quantileMultiple) Observe(s Sample) {
	m.record(s)
	if s.End == TimedOut {
		m.growth.observe(s)
	}
}

func (m *quantileMultiple) Estimate(now int64, b Bounds) Estimate {
	var s survey
	m.survey(now, int64(10/(1-m.rule.Quantile)), &s)
	hit := m.look()
	e := Estimate{State: Cold}
	if s.calls >= minCalls {
		s.survive()
		e.Median, _ = s.quantile(0.5)
		q, ok := s.quantile(m.rule.Quantile)
		if e.State = Unresolved; ok {
			m.limit, e.State = scaled(q, m.rule.Multiple), Resolved
		}
	}
	if hit && e.State != Resolved {
		m.double(b.Max)
	}
	m.limit = b.clamp(m.limit)
	e.Limit = m.limit
	return e
}
