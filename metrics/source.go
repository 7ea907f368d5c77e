package metrics

// A Sample is one value of a family at one moment.
type Sample struct {
	Desc   *Desc
	Labels []string // values, in the order of Desc.Labels; valid until the yield that got them returns
	Value  float64
}

// fits reports whether the sample can be read at all.
func (s Sample) fits() bool {
	return s.Desc != nil && len(s.Labels) == len(s.Desc.Labels)
}

// A Source is something that can be looked at: a breaker, a limiter, a group of
// them. It is pulled, so that counting costs its hot path nothing more than it
// counts for itself. Both methods are safe for concurrent use, take no lock that
// the hot path takes, and do not wait.
type Source interface {
	// Collect calls yield with each sample, in any order, and stops when yield
	// returns false. The value of a Counter never goes down from one Collect to the
	// next; Total helps with that. A Source may use one slice for the labels of all
	// its samples.
	Collect(yield func(Sample) bool)

	// View returns a snapshot that encoding/json can marshal, for people and
	// dashboards. Nothing in it changes afterwards. A time.Duration in it is a number
	// of nanoseconds in JSON.
	View() any
}
