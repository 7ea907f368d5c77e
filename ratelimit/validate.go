package ratelimit

import "fmt"

// complaints collects errors, each with the package's prefix.
type complaints []error

func (v *complaints) add(format string, args ...any) {
	*v = append(*v, fmt.Errorf("ratelimit: "+format, args...))
}

// unless adds the complaint if ok is false.
func (v *complaints) unless(ok bool, format string, args ...any) {
	if !ok {
		v.add(format, args...)
	}
}
