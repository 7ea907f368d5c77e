package adaptive

// aimd is the tracker of AIMD: additive increase, multiplicative decrease (Chiu, Jain:
// "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in Computer
// Networks", 1989), with a start that grows faster until the first decrease.
type aimd struct{ started bool }

func (a *aimd) next(w *LimitWindow, r *LimitRule) float64 {
	factor, down := w.dropped(r.Tolerance)
	if !down && a.slow(w, r) {
		factor, down = 0.9, true
	}
	switch {
	case down:
		a.started = true
		return w.Limit * factor
	case w.needless() || w.Calls == 0:
		return w.Limit
	case !a.started:
		return w.Limit*1.5 + 1
	}
	return w.Limit + 1
}

func (a *aimd) urgent(w *LimitWindow, r *LimitRule) bool {
	_, ok := w.dropped(r.Tolerance)
	return ok || a.slow(w, r)
}

func (a *aimd) slow(w *LimitWindow, r *LimitRule) bool {
	return r.MaxHealthy > 0 && w.Took > r.MaxHealthy
}

func (a *aimd) finding() limitFinding { return limitFinding{} }
