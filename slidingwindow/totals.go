package slidingwindow

// Totals is all that has left the windows made with NewCountsInto: it only
// grows. The zero Totals is ready; it is safe for concurrent use and must not be
// copied.
type Totals struct{ tally }

// Record counts one event that was in no window.
func (t *Totals) Record(e Event) { t.add(e) }

// Sums is what has been counted so far.
func (t *Totals) Sums() Sums { return t.sums() }
