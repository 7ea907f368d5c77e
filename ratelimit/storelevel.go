package ratelimit

import "time"

// storeLevel is a bucket as a store keeps it, in whole units (see Quota.Units). It is
// plain arithmetic, and the reference for stores in other languages. The zero
// storeLevel is a key that is not known: a full bucket.
//
// A level has lives, and a receipt is worth nothing in another life than its own. A
// life ends when the bucket has been full for some time, which changes nothing for
// its receipts: what they are about has run over the brim. It also ends when the
// clock is set back or the rate changes, since then nobody can tell.
type storeLevel struct {
	level      int64 // units there are at the time at; below 0 in debt
	at         int64 // microseconds
	refunded   int64 // units given back in this life
	born       int64 // when this life began
	unit, gain int64 // what the quota was, 0 if there was none
}

// advance lets time pass until now, from where on q holds.
func (l *storeLevel) advance(q Quota, now int64) {
	unit, gain, full := q.Units()
	if l.gain == 0 {
		*l = storeLevel{level: full, at: now, born: now, unit: unit, gain: gain}
		return
	}
	elapsed := now - l.at
	l.at = now
	if elapsed < 0 || l.refunded > maxStored/4 {
		l.begin(now)
	}
	brim := rescale(full, unit, l.unit)
	if elapsed > (brim-l.level)/l.gain {
		l.level = brim
		l.begin(now)
	} else if elapsed > 0 {
		l.level += elapsed * l.gain
	}
	if unit != l.unit || gain != l.gain {
		l.level = min(rescale(l.level, l.unit, unit), full)
		l.unit, l.gain = unit, gain
		l.begin(now)
	}
}

// begin begins another life, which is told from the last one even in the same
// microsecond.
func (l *storeLevel) begin(now int64) { l.born, l.refunded = max(now, l.born+1), 0 }

// take answers ask, at the time of the last advance.
func (l *storeLevel) take(q Quota, ask Ask) Grant {
	g := Grant{Tokens: min(ask.Max, max(0, l.level/l.unit))}
	if g.Tokens < ask.Min {
		after := l.level - ask.Min*l.unit
		wait := l.lasts(-after)
		if wait > ask.MaxWait || after < -maxStored/2 {
			g.Tokens, g.RetryAfter = 0, wait
		} else {
			g.Tokens, g.Wait = ask.Min, wait
		}
	}
	l.level -= g.Tokens * l.unit
	g.Remaining = max(0, l.level/l.unit)
	g.ResetAfter = l.lasts(q.Burst*l.unit - l.level)
	g.Receipt = Receipt{l.level, l.at, l.refunded, l.born}
	return g
}

// refund gives back n tokens of the take with that receipt: of the units that the
// take has left missing, those that neither time since then nor other refunds have
// brought back. That errs on the side of too few, when a take is given back before
// an earlier one of a bucket that is nearly full.
func (l *storeLevel) refund(q Quota, r Receipt, n int64) {
	level, at, refunded, born := r[0], r[1], r[2], r[3]
	full := q.Burst * l.unit
	missing := full - level
	if born != l.born || n <= 0 || l.at-at > missing/l.gain {
		return
	}
	missing -= (l.at-at)*l.gain + l.refunded - refunded
	back := max(0, min(missing, min(n, q.Burst)*l.unit, full-l.level))
	l.level += back
	l.refunded += back
}

// debit takes n tokens, but leaves no more than the burst below 0.
func (l *storeLevel) debit(q Quota, n int64) {
	debt := min(l.level, -q.Burst*l.unit)
	l.level = max(debt, l.level-min(n, 2*q.Burst)*l.unit)
}

// fullAt is when the bucket will be full, and may be forgotten.
func (l *storeLevel) fullAt(q Quota) int64 {
	return l.at + ceilDiv(q.Burst*l.unit-l.level, l.gain)
}

// lasts is how long it takes until so many units have come.
func (l *storeLevel) lasts(units int64) time.Duration {
	return time.Duration(ceilDiv(max(0, units), l.gain)) * time.Microsecond
}

// ceilDiv returns x / y rounded up, for an x of at least 0.
func ceilDiv(x, y int64) int64 { return (x + y - 1) / y }
