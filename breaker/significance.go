package breaker

import "math"

// significant reports whether bad of total calls show, at z standard deviations,
// that the true ratio is at least the given one: whether the lower bound of the
// Wilson score interval (E. B. Wilson, 1927) reaches it. z = 0 asks for nothing.
func significant(bad, total int64, ratio, z float64) bool {
	if z == 0 {
		return true
	}
	n := float64(total)
	p, zz := float64(bad)/n, z*z
	low := (p + zz/(2*n) - z*math.Sqrt(p*(1-p)/n+zz/(4*n*n))) / (1 + zz/n)
	return low >= ratio
}
