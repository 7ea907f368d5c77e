package slidingwindow

// Totals is all that has left the windows made with NewCountsInto: it only
// grows. The zero Totals is ready; it is safe for concurrent use and must not be
// copied.
type Totals struct{ tally }

// Record counts one event that was in no window.
func (t *Totals) Record(e Event) { t.add(e) }

// Sums is what has been counted so far.
func (t *Totals) Sums() Sums {
	s := t.sums()
	// Of two goroutines that carry over the same bucket, one may be done with the
	// failures before the other is with the total.
	s.Failures, s.Slow = min(s.Failures, s.Total), min(s.Slow, s.Total)
	return s
}
