package storetest

import (
	"time"

	"github.com/sluicego/sluice/ratelimit"
)

// clocks are the checks of time and of what it does to keys.
func clocks() []Check {
	return []Check{
		{"ForgetsNoSoonerThanFull", "a key is not forgotten before its bucket is full: an expiry is rounded up", forgetsNoSoonerThanFull},
		{"RefillsAtOnceAfterSetBack", "when its clock is set back, no token appears or disappears and the bucket fills on", refillsAtOnceAfterSetBack},
		{"FullAtMostAfterSetForward", "when its clock is set forward, the bucket is at most full", fullAtMostAfterSetForward},
		{"LostKeysAreFull", "a key that was lost is a full bucket, and works on", lostKeysAreFull},
	}
}

// A store that rounded the expiry down to whole seconds let 9 pass where 6 may, at
// one token in 1.9 s.
func forgetsNoSoonerThanFull(t *trial) {
	q := ratelimit.Quota{Rate: ratelimit.Every(1900 * time.Millisecond), Burst: 1}
	length := 10 * time.Second
	if t.short {
		length = 4 * time.Second
	}
	w := t.watch()
	granted := int64(0)
	for w.least() < length {
		granted += t.ask(q, ratelimit.Ask{Min: 1, Max: 1}).Tokens
		t.pass(100 * time.Millisecond)
	}
	if most := 1 + come(q.Rate, w.most()); granted > most {
		t.errorf("granted %d in %v at one in %v, want at most %d", granted, w.most(), q.Rate.Per, most)
	}
	// The same for whole milliseconds.
	q = ratelimit.Quota{Rate: ratelimit.Rate{Tokens: 1000, Per: 1900 * time.Millisecond}, Burst: 1}
	t.key.Key = "another"
	w = t.watch()
	granted = 0
	for range 200 {
		granted += t.ask(q, ratelimit.Ask{Min: 1, Max: 1}).Tokens
		t.pass(500 * time.Microsecond)
	}
	if most := 1 + come(q.Rate, w.most()); granted > most {
		t.errorf("granted %d in %v at one in 1.9 ms, want at most %d", granted, w.most(), most)
	}
}

func refillsAtOnceAfterSetBack(t *trial) {
	t.need(t.Step != nil, "Step")
	t.take(hourly, 6)
	t.key.Key = "empty"
	t.take(hourly, 10)
	q := ratelimit.Quota{Rate: ratelimit.PerSecond(10), Burst: 10}
	t.key.Key = "fast"
	t.take(q, 10)
	t.Step(-10 * time.Minute)
	t.left(q) // when the store may notice
	t.pass(200 * time.Millisecond)
	t.take(q, 1)
	t.key.Key = "key"
	t.want("what is left of 4 when the clock was set back", t.left(hourly), int64(4))
	t.key.Key = "empty"
	g := t.refused(hourly, 1)
	t.within("RetryAfter of an empty bucket", g.RetryAfter, 0, time.Hour)
}

func fullAtMostAfterSetForward(t *trial) {
	t.need(t.Step != nil, "Step")
	t.take(hourly, 10)
	t.Step(100 * time.Hour)
	t.want("what is left", t.left(hourly), int64(10))
	t.take(hourly, 10)
	t.refused(hourly, 1)
}

func lostKeysAreFull(t *trial) {
	t.need(t.Lose != nil, "Lose")
	t.take(hourly, 10)
	t.Lose()
	t.want("what is left", t.left(hourly), int64(10))
	t.take(hourly, 10)
	t.refused(hourly, 1)
}
