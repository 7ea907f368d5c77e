package ratelimit

import (
	"context"
	"errors"
	"time"
)

// A Store keeps what the processes of a fleet have used of their common limits: for
// each key one bucket, and for each limiter the nodes that take from it. Shared asks
// it; package storetest examines an implementation; NewMemoryStore is one for a
// single process.
//
// What an implementation promises:
//
//   - Each call is one atomic step, whoever else calls at the same time. A grant is
//     never more than was there.
//   - Time is the store's own, in whole microseconds: no clock of a caller plays a
//     part. When it is set back no token appears or disappears and the bucket goes on
//     filling at once; when it is set forward a bucket is at most full.
//   - A key that the store does not know is a full bucket. It may forget a key when
//     the bucket is full again, not a microsecond before (round an expiry up), and
//     must do so some time after: no key stays for ever. A key lost for another
//     reason is full, and receipts of before are worth nothing.
//   - All numbers are whole. A wait is rounded up, tokens and levels down.
//   - An error says that the store gave nothing it knows of, but it may have taken
//     the tokens all the same. It must not try again by itself what takes tokens.
//   - A grant is one that was asked for: no tokens, or Min to Max of them, within
//     MaxWait. Shared takes any other for a failure, and so a panic.
//   - A call returns when its ctx ends, with an error. Shared gives it a few
//     milliseconds, and does not call again while one after the other fails.
//   - All methods are safe for concurrent use.
type Store interface {
	// Take takes tokens from the key's bucket, or none: see Ask.
	Take(ctx context.Context, key StoreKey, q Quota, ask Ask) (Grant, error)
	// Refund gives back n tokens of the take that r is the receipt of, but never more
	// than would be there now if they had never been taken: those that the bucket has
	// been full without since, or would have been, are lost. A take may be refunded in
	// several parts. Those who have reserved keep the time that they were
	// promised, so after the refund of a reservation the next tokens may be used as
	// much sooner behind theirs.
	Refund(ctx context.Context, key StoreKey, q Quota, r Receipt, n int64) error
	// Debit takes n tokens whether they are there or not, but leaves the bucket no
	// more than Burst below empty.
	Debit(ctx context.Context, key StoreKey, q Quota, n int64) error
	// Beat says that a node takes part in the limiter for the time ttl from now on,
	// and returns how many do, itself included. A ttl of 0 says that it takes no part
	// any more.
	Beat(ctx context.Context, limiter, node string, ttl time.Duration) (nodes int64, err error)
}

// StoreKey names a bucket in a Store: Key is "" for a limiter that has only one. Keys
// may be addresses and names of users: a store that others can read should hash
// them.
type StoreKey struct{ Limiter, Key string }

// Quota is the bucket that a store keeps for a key. It holds up to Burst tokens and
// fills at Rate. Callers may change the quota of a key at any time: it keeps the tokens
// that are there, as far as the new Burst can hold them, or the debt.
type Quota struct {
	Rate  Rate
	Burst int64
}

// Ask is how many tokens somebody wants from a store.
type Ask struct {
	// Min and Max: at least Min tokens or none, and up to Max as far as they are there.
	// 0 ≤ Min ≤ Max, and Min is at most the quota's Burst. A Max of 0 only looks.
	Min, Max int64
	// MaxWait reserves: if less than Min are there, Min are granted that will be there
	// within MaxWait.
	MaxWait time.Duration
}

// Grant is a store's answer to an Ask.
type Grant struct {
	// Tokens were taken; fewer than Min is none at all.
	Tokens int64
	// Wait is how long it takes until they are there, if they were reserved.
	Wait time.Duration
	// Remaining is how many whole tokens are left.
	Remaining int64
	// RetryAfter is how long it takes until Min will be there, if they were not
	// granted and nobody else takes any.
	RetryAfter time.Duration
	// ResetAfter is how long it takes until the bucket is full.
	ResetAfter time.Duration
	// Receipt is for Refund.
	Receipt Receipt
}

// Receipt is what a store wants to be told when tokens come back. Only the store
// knows what the numbers mean.
type Receipt [4]int64

// maxStored is how large a whole number may be in a store: what fits a float64, since
// the scripts of a Redis have no other numbers.
const maxStored = 1 << 53

// Validate returns what is wrong with q: Rate must be a real rate whose Per is whole
// microseconds, Burst at least 1, and both so small that a store can count in whole
// numbers of 53 bits.
func (q Quota) Validate() error {
	var v complaints
	if err := q.Rate.Validate(); err != nil {
		return err
	}
	v.unless(!q.Rate.IsUnlimited() && !q.Rate.IsBlocked(), "a store keeps no bucket for the rate %v", q.Rate)
	v.unless(q.Rate.Per%time.Microsecond == 0, "Rate.Per %v is not whole microseconds, which a store counts in", q.Rate.Per)
	v.unless(q.Burst >= 1, "Burst %d is less than 1", q.Burst)
	if len(v) > 0 {
		return errors.Join(v...)
	}
	// A quarter leaves room for a bucket in debt and what is asked of it.
	unit, _, _ := q.Units()
	v.unless(q.Burst <= maxStored/4/unit, "Burst %d at %v is more than the %d that a store can count", q.Burst, q.Rate, maxStored/4/unit)
	v.unless(q.Rate.Tokens <= maxStored/4, "Rate.Tokens %d is more than the %d that a store can count", q.Rate.Tokens, int64(maxStored/4))
	return errors.Join(v...)
}

// Units says how a store counts without rounding: a token is unit units, gain units
// come each microsecond, and the full bucket has full. q is valid.
func (q Quota) Units() (unit, gain, full int64) {
	unit, gain = q.Rate.Per.Microseconds(), q.Rate.Tokens
	a, b := unit, gain
	for b > 0 {
		a, b = b, a%b
	}
	unit, gain = unit/a, gain/a
	return unit, gain, q.Burst * unit
}

// Validate returns what is wrong with a as an Ask of q.
func (a Ask) Validate(q Quota) error {
	var v complaints
	v.unless(a.Min >= 0 && a.Min <= a.Max, "Ask.Min %d is not in [0, Max %d]", a.Min, a.Max)
	v.unless(a.Min <= q.Burst, "Ask.Min %d is more than Burst %d", a.Min, q.Burst)
	v.unless(a.MaxWait >= 0, "Ask.MaxWait %v is negative", a.MaxWait)
	return errors.Join(v...)
}
