package ratelimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// maxPerNano is the highest rate, in tokens per nanosecond: 10 000 000 000/s.
	maxPerNano = 10
	// maxPer is the longest Per: a leap year.
	maxPer = 366 * 24 * time.Hour
	day    = 24 * time.Hour
)

// Rate is so many tokens in so long a time, both whole, so that no rate has to be
// rounded. It does not say how many may come at once: that is a limiter's burst or
// window.
//
// The zero Rate is invalid. No limit and no tokens at all are said explicitly, by
// Unlimited and Blocked. Rates can be compared with ==; PerSecond(60) and
// PerMinute(3600) are different texts for the same speed, and not equal.
//
// As text, in JSON and in flags, a Rate is "100/s", "60/m", "1000/h", "1/d",
// "1/250ms", "unlimited" or "blocked".
type Rate struct {
	// Tokens is how many tokens come in Per, at least 1.
	Tokens int64
	// Per is the time in which they come, at most 366 days.
	Per time.Duration
}

// PerSecond returns the rate of n tokens a second.
func PerSecond(n int64) Rate { return Rate{n, time.Second} }

// PerMinute returns the rate of n tokens a minute.
func PerMinute(n int64) Rate { return Rate{n, time.Minute} }

// PerHour returns the rate of n tokens an hour.
func PerHour(n int64) Rate { return Rate{n, time.Hour} }

// PerDay returns the rate of n tokens in 24 hours.
func PerDay(n int64) Rate { return Rate{n, day} }

// Every returns the rate of one token every d.
func Every(d time.Duration) Rate { return Rate{1, d} }

// The rates that are none have a Per that no other can have.
const (
	unlimitedPer time.Duration = -1
	blockedPer   time.Duration = -2
)

// Unlimited returns the rate of a limiter that admits everything.
func Unlimited() Rate { return Rate{Per: unlimitedPer} }

// Blocked returns the rate of a limiter that admits nothing.
func Blocked() Rate { return Rate{Per: blockedPer} }

// IsUnlimited reports whether r is Unlimited().
func (r Rate) IsUnlimited() bool { return r == Unlimited() }

// IsBlocked reports whether r is Blocked().
func (r Rate) IsBlocked() bool { return r == Blocked() }

// Validate returns what is wrong with r: Tokens and Per must be positive, Per at
// most 366 days, and the rate at most 10 000 000 000 tokens a second.
func (r Rate) Validate() error {
	if r.IsUnlimited() || r.IsBlocked() {
		return nil
	}
	var v complaints
	v.unless(r.Tokens >= 1, "Rate.Tokens %d is not positive; no tokens at all is Blocked()", r.Tokens)
	v.unless(r.Per > 0, "Rate.Per %v is not positive", r.Per)
	v.unless(r.Per <= maxPer, "Rate.Per %v is more than %v", r.Per, maxPer)
	if len(v) == 0 {
		v.unless(r.Tokens <= maxPerNano*int64(r.Per), "Rate %v is more than 10000000000/s: count in larger units", r)
	}
	return errors.Join(v...)
}

// String returns the rate as ParseRate reads it.
func (r Rate) String() string {
	switch r {
	case Unlimited():
		return "unlimited"
	case Blocked():
		return "blocked"
	}
	per := ""
	switch r.Per {
	case time.Millisecond:
		per = "ms"
	case time.Second:
		per = "s"
	case time.Minute:
		per = "m"
	case time.Hour:
		per = "h"
	case day:
		per = "d"
	default:
		per = r.Per.String()
	}
	return strconv.FormatInt(r.Tokens, 10) + "/" + per
}

// ParseRate reads a rate from text: whole tokens, a slash and the time in which
// they come, which is a unit ("ns", "us", "ms", "s", "m", "h", "d") or a duration
// as time.ParseDuration reads it; or "unlimited" or "blocked". What it returns is
// valid.
func ParseRate(text string) (Rate, error) {
	switch text {
	case "unlimited":
		return Unlimited(), nil
	case "blocked":
		return Blocked(), nil
	}
	tokens, per, found := strings.Cut(text, "/")
	n, err := strconv.ParseInt(tokens, 10, 64)
	if !found || err != nil {
		return Rate{}, notRate(text)
	}
	d, err := parsePer(per)
	if err != nil {
		return Rate{}, notRate(text)
	}
	r := Rate{n, d}
	if err := r.Validate(); err != nil {
		return Rate{}, err
	}
	return r, nil
}

func notRate(text string) error {
	const most = 64
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return fmt.Errorf(`ratelimit: %q is not a rate such as "100/s", "60/m" or "1/250ms", nor "unlimited" or "blocked"`, text)
}

// parsePer reads a unit or a duration. Signs are no part of it: those of Unlimited
// and Blocked would come in by the back door.
func parsePer(text string) (time.Duration, error) {
	if text == "" || text[0] == '-' || text[0] == '+' {
		return 0, strconv.ErrSyntax
	}
	if text == "d" {
		return day, nil
	}
	if text[0] < '0' || text[0] > '9' {
		text = "1" + text
	}
	return time.ParseDuration(text)
}

// MarshalText writes what String returns, also for a Rate that does not validate:
// to complain is up to its owner.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what ParseRate reads. r is as before when it returns an
// error.
func (r *Rate) UnmarshalText(text []byte) error {
	parsed, err := ParseRate(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}
