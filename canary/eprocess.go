package canary

import "math"

// ratios are how many times as often the canary could fail as stable does. Evidence is
// looked for at each of them, so that a little more is found, slowly, and a lot more at
// once.
var ratios = [...]float64{1.25, 1.5, 2, 3, 5, 10, 20, 50, 100}

// An eprocess is the evidence that the canary fails more often than stable: for each
// ratio the logarithm of how much better it explains what was seen than "no worse" does.
//
// Of x failures of the canary and y of stable, each is the canary's with probability p,
// its share of the users, if both fail equally often; if the canary fails r times as
// often, with q = p·r / (p·r + 1 − p). So the evidence for r is
// (q/p)^x · ((1−q)/(1−p))^y, and E is the mean over all r. How often anything fails at
// all, and how that changes, cancels out. Under "no worse" E exceeds 1/α with a
// probability of at most α, however often one looks (Ville's inequality): see Lindon and
// Malek, arXiv:2011.03567, and Lindon, Sanden and Shirikian, arXiv:2205.14762.
//
// That holds as long as each user counts once. So one eprocess is for one step.
type eprocess [len(ratios)]float64

// add counts x failures of the canary and y of stable, seen while the canary had the
// share p of the users of both. Where there is nobody to compare with they say nothing.
func (e *eprocess) add(x, y int64, p float64) {
	if !(p > 0 && p < 1) {
		return
	}
	for i, r := range ratios {
		worse := p*r + 1 - p // q/p is r/worse, and (1−q)/(1−p) is 1/worse
		e[i] += float64(x)*math.Log(r) - float64(x+y)*math.Log(worse)
	}
}

// log returns the natural logarithm of E.
func (e *eprocess) log() float64 {
	most := math.Inf(-1)
	for _, l := range e {
		most = max(most, l)
	}
	sum := 0.0
	for _, l := range e {
		sum += math.Exp(l - most)
	}
	return most + math.Log(sum/float64(len(e)))
}

// eValue is E for people and metrics; beyond the numbers it stays at 1e300.
func eValue(log float64) float64 { return min(math.Exp(log), 1e300) }

// against is the logarithm of how much better "some other share" explains k of n than
// the share theta does: the mean of all shares, weighed by the distribution Beta(a, b),
// over theta. As a sequence it is an e-process, too.
func against(theta, a, b float64, k, n int64) float64 {
	k1, k2 := float64(k), float64(n-k)
	log := logBeta(a+k1, b+k2) - logBeta(a, b)
	if k1 > 0 {
		log -= k1 * math.Log(theta)
	}
	if k2 > 0 {
		log -= k2 * math.Log1p(-theta)
	}
	return log
}

func logBeta(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return la + lb - lab
}

// atLeast and atMost bound the true share from which k of n were drawn: the bound is
// wrong with a probability of at most alpha, however often one looks. (It is the
// sequence of confidence intervals that belongs to a uniform beta-binomial mixture: see
// Robbins, 1970.) Of nothing, all is possible.
func atLeast(k, n int64, alpha float64) float64 {
	if k == 0 {
		return 0
	}
	return bisect(0, float64(k)/float64(n), func(theta float64) bool { return against(theta, 1, 1, k, n) < -math.Log(alpha) })
}

func atMost(k, n int64, alpha float64) float64 {
	if k == n {
		return 1
	}
	return 1 - atLeast(n-k, n, alpha)
}

// bisect finds where holds turns from false at lo to true at hi.
func bisect(lo, hi float64, holds func(float64) bool) float64 {
	for range 60 {
		if mid := (lo + hi) / 2; holds(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// ratioAtMost bounds from above how many times as often as stable the canary fails, if x
// failures were the canary's and y stable's while the canary had the share p of the users;
// infinite if nothing is known.
func ratioAtMost(x, y int64, p, alpha float64) float64 {
	theta := atMost(x, x+y, alpha)
	if !(p > 0 && p < 1) || theta == 1 {
		return math.Inf(1)
	}
	return theta / (1 - theta) * (1 - p) / p
}

// mismatch is the logarithm of the evidence that not a share p of all users is the
// canary's, of whom canary and stable were seen (the sequential test for a sample ratio
// mismatch of arXiv:2011.03567). The other shares that it has in mind lie around p.
func mismatch(canary, stable int64, p float64) float64 {
	const focus = 100
	if !(p > 0 && p < 1) {
		return 0
	}
	return against(p, focus*p, focus*(1-p), canary, canary+stable)
}

// linearCount estimates how many users lie behind seen of cells places, when users fall
// on places by chance (linear counting: Whang, Vander-Zanden and Taylor, 1990). When every
// place was seen it is the largest number that this can tell.
func linearCount(seen, cells int64) int64 {
	if seen <= 0 || cells <= 0 {
		return 0
	}
	free := max(float64(cells-seen), 0.5)
	return max(seen, int64(math.Round(-float64(cells)*math.Log(free/float64(cells)))))
}
