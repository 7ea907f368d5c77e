package canary

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
)

// Shares turns parts of a whole into weights that are All together, exactly: those of
// 1, 1 and 1 are 333334, 333333 and 333333 ppm. What is left by rounding down goes to
// the largest remainders, the first name first among equals. A part of 0 is nobody, and
// every other part gets at least one ppm. Give it all versions, the stable one too, and
// SetWeights what it returns.
//
// Negative parts are an error, and so are parts that are all 0, or more than 1 000.
func Shares(parts map[string]int) (map[string]Weight, error) {
	names := slices.Sorted(maps.Keys(parts))
	var errs []error
	var whole, carry uint64
	for _, name := range names {
		if parts[name] < 0 {
			errs = append(errs, fmt.Errorf("canary: the part of %q is %d, which is negative", name, parts[name]))
			continue
		}
		whole, carry = bits.Add64(whole, uint64(parts[name]), 0)
		if carry > 0 {
			errs = append(errs, errors.New("canary: parts add up to more than a uint64 holds"))
		}
	}
	if whole == 0 && len(errs) == 0 {
		errs = append(errs, errors.New("canary: parts are 0 together"))
	}
	if len(parts) > maxParts {
		errs = append(errs, fmt.Errorf("canary: %d parts are more than %d", len(parts), maxParts))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return roundParts(names, parts, whole), nil
}

const maxParts = 1000

// roundParts does what Shares says, with parts that add up to whole.
func roundParts(names []string, parts map[string]int, whole uint64) map[string]Weight {
	weights, remainder := map[string]Weight{}, map[string]uint64{}
	left := int64(All)
	for _, name := range names {
		hi, lo := bits.Mul64(uint64(parts[name]), uint64(All))
		ppm, rest := bits.Div64(hi, lo, whole)
		if ppm == 0 && rest > 0 {
			ppm, rest = 1, 0
		}
		weights[name], remainder[name] = Weight(ppm), rest
		left -= int64(ppm)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(remainder[b], remainder[a]) })
	for i := 0; left > 0; i++ {
		if name := names[i%len(names)]; weights[name] > 0 {
			weights[name]++
			left--
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(weights[b], weights[a]) })
	for i := 0; left < 0; i++ { // what the smallest were given is taken from the largest
		if name := names[i%len(names)]; weights[name] > 1 {
			weights[name]--
			left++
		}
	}
	return weights
}
