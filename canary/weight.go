package canary

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Weight is a share of all identities in parts per million: 0 is nobody, All is
// everybody. Make one with Percent, PPM or Ratio.
//
// A Weight that is no whole number of ppm, or not in [0, All], is invalid. It keeps
// the number that was asked for, and whoever takes a Weight refuses it by that
// number; nothing is rounded. In JSON a Weight is text with its unit, "5%" or
// "500ppm"; a bare number is an error, and 0 is written like any other.
type Weight uint64 // up to All the share; above it whatever was asked for, as refused has it

// All is the weight of everybody: 100 %.
const All Weight = 1_000_000

// PPM is n parts per million.
func PPM(n int) Weight {
	if n >= 0 && n <= int(All) {
		return Weight(n)
	}
	return refused(float64(n) / 10_000)
}

// Percent is p percent, as the number is written: Percent(0.29) is 2900 ppm. What is
// no whole ppm is invalid, and so is what a computation has left of one: 0.1 + 0.2 is
// 0.30000000000000004. Percent's finest step is 0.0001.
func Percent(p float64) Weight {
	if w, ok := parsePercent(strconv.FormatFloat(p, 'f', -1, 64)); ok {
		return w
	}
	return refused(p)
}

// Ratio is part of whole: Ratio(1, 2000) is 500 ppm. What is no whole ppm is invalid;
// see Shares for thirds.
func Ratio(part, whole int) Weight {
	if part >= 0 && whole > 0 && part <= whole {
		hi, lo := bits.Mul64(uint64(part), uint64(All))
		if ppm, rest := bits.Div64(hi, lo, uint64(whole)); rest == 0 {
			return Weight(ppm)
		}
	}
	return refused(float64(part) / float64(whole) * 100)
}

// refused is the invalid Weight of p percent. The bits of a float64 that is no
// denormal number are beyond every count of ppm.
func refused(p float64) Weight {
	if math.Abs(p) < smallestNormal {
		p = math.Copysign(smallestNormal, p)
	}
	return Weight(math.Float64bits(p))
}

const smallestNormal = 0x1p-1022

// Validate returns what is wrong with w, nil if nothing is.
func (w Weight) Validate() error {
	if w <= All {
		return nil
	}
	p, ok := w.asked()
	if ok && p > 0 && p < 100 {
		return fmt.Errorf("canary: weight %v is no whole ppm (0.0001%%)", w)
	}
	return fmt.Errorf("canary: weight %v is not in [0%%, 100%%]", w)
}

// asked returns the percentage that an invalid w was made of, if it was.
func (w Weight) asked() (percent float64, ok bool) {
	if w < Weight(math.Float64bits(smallestNormal)) {
		return 0, false // a plain count of ppm
	}
	return math.Float64frombits(uint64(w)), true
}

// Fraction is w as a number in [0, 1]; NaN if w is invalid.
func (w Weight) Fraction() float64 {
	if w > All {
		return math.NaN()
	}
	return float64(w) / float64(All)
}

// String returns the weight in percent, "0.05%"; for an invalid one, what was asked
// for.
func (w Weight) String() string {
	if w > All {
		if p, ok := w.asked(); ok {
			return strconv.FormatFloat(p, 'g', -1, 64) + "%"
		}
		return strconv.FormatUint(uint64(w), 10) + "ppm"
	}
	text := fmt.Sprintf("%d.%04d", w/10_000, w%10_000)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + "%"
}

// MarshalText returns the text of String.
func (w Weight) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

var errWeightText = errors.New(`want a share with its unit, such as "5%", "0.05%" or "500ppm"`)

// UnmarshalText reads what String writes, and parts per million. It leaves w
// unchanged when it returns an error.
func (w *Weight) UnmarshalText(text []byte) error {
	s := string(text)
	if number, ok := strings.CutSuffix(s, "ppm"); ok {
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
		if err != nil || n > uint64(All) {
			return fmt.Errorf("canary: weight %.40q: %w, in [0ppm, 1000000ppm]", s, errWeightText)
		}
		*w = Weight(n)
		return nil
	}
	number, ok := strings.CutSuffix(s, "%")
	parsed, exact := parsePercent(strings.TrimSpace(number))
	if !ok || !exact {
		return fmt.Errorf("canary: weight %.40q: %w, in [0%%, 100%%] by whole ppm (0.0001%%)", s, errWeightText)
	}
	*w = parsed
	return nil
}

// parsePercent reads a decimal number of percent, digit by digit, so that no binary
// fraction gets in between: 0.29 × 10⁴ is 2900, and not 2899.
func parsePercent(s string) (Weight, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	fraction = strings.TrimRight(fraction, "0")
	if whole == "" || len(whole) > 3 || len(fraction) > 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+fraction+"0000"[len(fraction):], 10, 32)
	if err != nil || n > uint64(All) {
		return 0, false
	}
	return Weight(n), true
}
