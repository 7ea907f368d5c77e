package storetest

import (
	"sync"
	"time"

	"github.com/sluicego/sluice/ratelimit"
)

// hourly is a bucket that does not fill while a check looks at it.
var hourly = ratelimit.Quota{Rate: ratelimit.PerHour(1), Burst: 10}

// takes are the checks of what is granted.
func takes() []Check {
	return []Check{
		{"StartsFull", "a key that is not known is a full bucket, and holds Burst tokens, not one more", startsFull},
		{"AllOrNothing", "at least Min tokens are granted, or none and none is taken", allOrNothing},
		{"LookingTakesNothing", "an Ask with a Max of 0 takes nothing", lookingTakesNothing},
		{"ChargesWhatItGrants", "of a grant between Min and Max exactly the tokens granted are gone, no fraction more", chargesWhatItGrants},
		{"SaysWhenItIsFull", "ResetAfter is how long it takes until all tokens are back", saysWhenItIsFull},
		{"RetryAfterHolds", "who comes again after RetryAfter gets his tokens, if nobody else came", retryAfterHolds},
		{"KeepsTheRate", "in any time no more is granted than Burst and what comes at Rate, however often it is asked", keepsTheRate},
		{"LosesNothing", "what comes at Rate is granted in full: no rounding adds up", losesNothing},
		{"CountsFast", "a rate of millions a second is kept as exactly as any other", countsFast},
		{"Atomic", "callers at the same time get together what one alone would get", atomic},
		{"Reserves", "with MaxWait, tokens are granted that will be there within it, and Wait says when", reserves},
		{"RefusesNonsense", "an Ask or a Quota that does not validate is an error, and takes nothing", refusesNonsense},
	}
}

func startsFull(t *trial) {
	t.want("what is left at first", t.left(hourly), int64(10))
	g := t.take(hourly, 10)
	t.want("Remaining", g.Remaining, int64(0))
	g = t.refused(hourly, 1)
	t.within("RetryAfter", g.RetryAfter, 0, time.Hour)
}

func allOrNothing(t *trial) {
	g := t.ask(hourly, ratelimit.Ask{Min: 3, Max: 6})
	t.want("what is granted of 3 to 6 of 10", g.Tokens, int64(6))
	g = t.ask(hourly, ratelimit.Ask{Min: 3, Max: 6})
	t.want("what is granted of 3 to 6 of 4", g.Tokens, int64(4))
	g = t.ask(hourly, ratelimit.Ask{Min: 0, Max: 6})
	t.want("what is granted of 0 to 6 of none", g.Tokens, int64(0))
	t.want("RetryAfter of an Ask with a Min of 0", g.RetryAfter, time.Duration(0))
	t.key.Key = "another"
	t.take(hourly, 6)
	g = t.ask(hourly, ratelimit.Ask{Min: 5, Max: 6})
	t.want("what is granted of 5 to 6 of 4", g.Tokens, int64(0))
	t.want("what is left of 4 after a refusal", g.Remaining, int64(4))
	t.want("what is left of 4 after a refusal, when asked", t.left(hourly), int64(4))
}

func lookingTakesNothing(t *trial) {
	t.take(hourly, 4)
	for range 3 {
		g := t.ask(hourly, ratelimit.Ask{})
		t.want("what looking is granted", g.Tokens, int64(0))
		t.want("what is left of 6", g.Remaining, int64(6))
	}
}

// A script that charged the fraction beyond the whole tokens that it granted gave
// only 100 of 150 tokens to somebody who asked for 5 every 150 ms.
func chargesWhatItGrants(t *trial) {
	q := ratelimit.Quota{Rate: ratelimit.PerSecond(10), Burst: 10}
	w := t.watch()
	t.take(q, 10)
	granted := int64(0)
	for range 12 {
		t.pass(150 * time.Millisecond)
		granted += t.ask(q, ratelimit.Ask{Min: 1, Max: 5}).Tokens
	}
	if least := come(q.Rate, w.least()); granted < least {
		t.errorf("granted %d, although %d have come in %v", granted, least, w.least())
	}
}

func saysWhenItIsFull(t *trial) {
	w := t.watch()
	g := t.take(hourly, 4)
	t.want("ResetAfter with 4 missing", g.ResetAfter, 4*time.Hour)
	g = t.ask(hourly, ratelimit.Ask{})
	t.within("ResetAfter with 4 missing, a moment later", g.ResetAfter, 4*time.Hour-w.most(), 4*time.Hour)
	t.key.Key = "another"
	t.want("ResetAfter of a full bucket", t.ask(hourly, ratelimit.Ask{}).ResetAfter, time.Duration(0))
}

func retryAfterHolds(t *trial) {
	q := ratelimit.Quota{Rate: ratelimit.Rate{Tokens: 3, Per: 100 * time.Millisecond}, Burst: 3}
	t.take(q, 3)
	for n := range int64(3) {
		n++
		g := t.ask(q, ratelimit.Ask{Min: n, Max: n})
		if g.Tokens > 0 {
			continue // this machine has been away
		}
		t.within("RetryAfter", g.RetryAfter, 0, 100*time.Millisecond)
		t.pass(g.RetryAfter)
		t.take(q, n)
	}
}

func keepsTheRate(t *trial) {
	q := ratelimit.Quota{Rate: ratelimit.PerSecond(20), Burst: 5}
	w := t.watch()
	granted, asked := int64(0), 0
	for w.least() < time.Second {
		for range 3 {
			granted += t.ask(q, ratelimit.Ask{Min: 1, Max: 1}).Tokens
			asked++
		}
		t.pass(7 * time.Millisecond)
	}
	if most := q.Burst + come(q.Rate, w.most()); granted > most {
		t.errorf("granted %d of %d in %v, want at most %d", granted, asked, w.most(), most)
	}
}

func losesNothing(t *trial) {
	q := ratelimit.Quota{Rate: ratelimit.PerSecond(70), Burst: 20}
	t.take(q, 20)
	w := t.watch()
	granted := int64(0)
	for w.least() < time.Second {
		t.pass(3 * time.Millisecond)
		granted += t.ask(q, ratelimit.Ask{Min: 0, Max: 20}).Tokens
	}
	if least := come(q.Rate, w.least()) - 1; granted < least {
		t.errorf("granted %d, although %d have come in %v", granted, least, w.least())
	}
}

func countsFast(t *trial) {
	q := ratelimit.Quota{Rate: ratelimit.PerSecond(3_000_000), Burst: 1_000_000_000}
	w := t.watch()
	granted := t.take(q, q.Burst).Tokens
	for range 20 {
		t.pass(time.Millisecond)
		granted += t.ask(q, ratelimit.Ask{Min: 1, Max: q.Burst}).Tokens
	}
	if most := q.Burst + come(q.Rate, w.most()) + 1; granted > most {
		t.errorf("granted %d in %v, want at most %d", granted, w.most(), most)
	}
	if least := q.Burst + come(q.Rate, w.least()) - 1; granted < least {
		t.errorf("granted %d, although %d have come in %v", granted, least, w.least())
	}
}

func atomic(t *trial) {
	q := ratelimit.Quota{Rate: ratelimit.PerHour(1), Burst: 200}
	var all sync.WaitGroup
	granted := make([]int64, 8)
	for i := range granted {
		all.Go(func() {
			t.try(func(t *trial) {
				for range 40 {
					granted[i] += t.ask(q, ratelimit.Ask{Min: 1, Max: 3}).Tokens
				}
			})
		})
	}
	all.Wait()
	sum := int64(0)
	for _, n := range granted {
		sum += n
	}
	t.want("what eight callers at the same time got of 200", sum, int64(200))
}

func reserves(t *trial) {
	q := ratelimit.Quota{Rate: ratelimit.PerHour(2), Burst: 2}
	w := t.watch()
	t.take(q, 2)
	g := t.ask(q, ratelimit.Ask{Min: 2, Max: 2, MaxWait: time.Hour / 2})
	t.want("what is granted of 2 that come in an hour, within half an hour", g.Tokens, int64(0))
	g = t.ask(q, ratelimit.Ask{Min: 2, Max: 2, MaxWait: 2 * time.Hour})
	t.want("what is granted of 2 that come in an hour, within 2 h", g.Tokens, int64(2))
	t.within("Wait", g.Wait, time.Hour-w.most(), time.Hour)
	g = t.ask(q, ratelimit.Ask{Min: 1, Max: 2, MaxWait: 2 * time.Hour})
	t.want("what the next is granted of 1 to 2", g.Tokens, int64(1))
	t.within("Wait of the next", g.Wait, 90*time.Minute-w.most(), 90*time.Minute)
	g = t.refused(q, 1)
	t.within("RetryAfter of the one after that", g.RetryAfter, 2*time.Hour-w.most(), 2*time.Hour)
}

func refusesNonsense(t *trial) {
	for _, c := range []struct {
		q ratelimit.Quota
		a ratelimit.Ask
	}{
		{hourly, ratelimit.Ask{Min: -1}},
		{hourly, ratelimit.Ask{Min: -3, Max: -3}},
		{hourly, ratelimit.Ask{Min: 2, Max: 1}},
		{hourly, ratelimit.Ask{Min: 11, Max: 11}},
		{hourly, ratelimit.Ask{Min: 1, Max: 1, MaxWait: -1}},
		{ratelimit.Quota{}, ratelimit.Ask{}},
		{ratelimit.Quota{Rate: ratelimit.PerHour(1)}, ratelimit.Ask{}},
		{ratelimit.Quota{Rate: ratelimit.Unlimited(), Burst: 10}, ratelimit.Ask{Min: 1, Max: 1}},
	} {
		if g, err := t.Store.Take(t.ctx, t.key, c.q, c.a); err == nil || g.Tokens != 0 {
			t.errorf("Take(%v, %+v) grants %d and says %v, want an error", c.q, c.a, g.Tokens, err)
		}
	}
	if err := t.Store.Debit(t.ctx, t.key, hourly, -5); err == nil {
		t.errorf("Debit of -5 is no error")
	}
	t.want("what is left of 10 after nothing but nonsense", t.left(hourly), int64(10))
}
