package slidingwindow

// Event is one finished call as a window sees it: a set of facts. The zero Event
// is a call that succeeded fast enough.
type Event uint8

const (
	// Failed: the call is an error for an error rule.
	Failed Event = 1 << iota
	// Slow: the call took longer than the slow limit.
	Slow
	// NoVerdict: the caller went away, so the call says nothing about errors. It
	// is recorded only together with Slow: a caller who gives up on a slow
	// dependency is evidence that it is slow. Alone it changes nothing.
	NoVerdict
)

// Sums is what a window holds. Failures and Slow never exceed Total.
//
// The error ratio is Failures / Total. The slow ratio is (Slow + GaveUp) /
// (Total + GaveUp), since calls that were given up while slow have no verdict
// but were slow all the same.
type Sums struct {
	Total    int64 // calls with a verdict
	Failures int64 // of those, errors
	Slow     int64 // of those, slow ones
	GaveUp   int64 // calls without a verdict that had run past the slow limit
}

// Plus adds b to s field by field.
func (s Sums) Plus(b Sums) Sums {
	return Sums{s.Total + b.Total, s.Failures + b.Failures, s.Slow + b.Slow, s.GaveUp + b.GaveUp}
}
