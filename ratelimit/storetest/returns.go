package storetest

import (
	"time"

	"github.com/sluicego/sluice/ratelimit"
)

// returns are the checks of what goes back and what is charged afterwards.
func returns() []Check {
	return []Check{
		{"RefundsAtOnce", "tokens that are given back at once are there again, all of them or some", refundsAtOnce},
		{"RefundsWhatIsStillMissing", "of tokens that are given back late, those count that would still be missing", refundsWhatIsStillMissing},
		{"RefundsNoneTwice", "a token is not given back to a bucket that time or another refund has filled meanwhile", refundsNoneTwice},
		{"RefundsReservations", "a reservation can be given back before its time", refundsReservations},
		{"RefundsNotToLostKeys", "a receipt is worth nothing for a key that was lost since", refundsNotToLostKeys},
		{"DebitsBelowEmpty", "a debit takes what is not there, down to Burst below empty, and time pays it", debitsBelowEmpty},
	}
}

func refundsAtOnce(t *trial) {
	g := t.take(hourly, 6)
	t.refund(hourly, g.Receipt, 4)
	t.want("what is left of 4 when 4 were given back", t.left(hourly), int64(8))
	t.refund(hourly, g.Receipt, 2)
	t.want("what is left when the other 2 were given back too", t.left(hourly), int64(10))
	t.refund(hourly, g.Receipt, 0)
	t.take(hourly, 10)
	t.refused(hourly, 1)
}

func refundsWhatIsStillMissing(t *trial) {
	q := ratelimit.Quota{Rate: ratelimit.PerMinute(120), Burst: 100}
	first := t.take(q, 50)
	t.pass(1100 * time.Millisecond) // two have come by themselves, perhaps more
	w := t.watch()
	t.take(q, 50)
	t.refund(q, first.Receipt, 50)
	if left, most := t.left(q), 50+come(q.Rate, w.most()); left > most {
		t.errorf("%d are left, but without the take that was given back there would be %d: the bucket was full", left, most)
	} else if left < 49 {
		t.errorf("%d are left, but 50 were full, and of the other 50 those were given back that had not come", left)
	}
}

// What others have given back counts. Two take 5 of 10, one gives them back, time
// fills the bucket, and 5 more are taken: of the other's 5 nothing is missing any
// more.
func refundsNoneTwice(t *trial) {
	q := ratelimit.Quota{Rate: ratelimit.PerSecond(10), Burst: 10}
	a, b := t.take(q, 5), t.take(q, 5)
	t.refund(q, a.Receipt, 5)
	t.pass(500 * time.Millisecond)
	w := t.watch()
	t.take(q, 5)
	t.refund(q, b.Receipt, 5)
	if left, most := t.left(q), 5+come(q.Rate, w.most()); left > most {
		t.errorf("%d of 10 are left, want at most %d", left, most)
	}
}

func refundsReservations(t *trial) {
	q := ratelimit.Quota{Rate: ratelimit.PerHour(2), Burst: 2}
	t.take(q, 2)
	g := t.ask(q, ratelimit.Ask{Min: 2, Max: 2, MaxWait: 2 * time.Hour})
	t.want("what is granted within 2 h", g.Tokens, int64(2))
	t.refund(q, g.Receipt, 2)
	g = t.ask(q, ratelimit.Ask{Min: 1, Max: 1, MaxWait: 31 * time.Minute})
	t.want("what is granted within 31 min when the queue is empty again", g.Tokens, int64(1))
}

func refundsNotToLostKeys(t *trial) {
	t.need(t.Lose != nil, "Lose")
	g := t.take(hourly, 6)
	t.Lose()
	t.pass(2 * time.Millisecond)
	t.take(hourly, 6)
	t.refund(hourly, g.Receipt, 6)
	t.want("what is left of 4", t.left(hourly), int64(4))
}

func debitsBelowEmpty(t *trial) {
	t.debit(hourly, 3)
	t.want("what is left of 10 after a debit of 3", t.left(hourly), int64(7))
	t.debit(hourly, 9)
	t.want("what is left after one of 9 more", t.left(hourly), int64(0))
	g := t.refused(hourly, 1)
	t.within("RetryAfter with 2 in debt", g.RetryAfter, 2*time.Hour, 3*time.Hour)
	t.debit(hourly, 1_000_000_000_000)
	g = t.refused(hourly, 1)
	t.within("RetryAfter with 10 in debt", g.RetryAfter, 10*time.Hour, 11*time.Hour)

	q := ratelimit.Quota{Rate: ratelimit.PerSecond(10), Burst: 10}
	t.key.Key = "another"
	t.debit(q, 12)
	t.pass(300 * time.Millisecond)
	t.take(q, 1)
}
