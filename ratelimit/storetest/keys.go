package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluicego/sluice/ratelimit"
)

// keys are the checks of keys, quotas and nodes.
func keys() []Check {
	return []Check{
		{"KeysAreApart", "two keys never share a bucket, whatever they are made of", keysAreApart},
		{"AnotherQuotaKeepsTheLevel", "a key whose quota changes keeps the tokens that are there, as far as the new Burst holds them", anotherQuotaKeepsTheLevel},
		{"CountsNodes", "Beat returns how many nodes take part in a limiter; one that says goodbye is gone at once", countsNodes},
		{"ForgetsSilentNodes", "a node that has not beaten for its ttl is not counted, and one that has, is", forgetsSilentNodes},
	}
}

func keysAreApart(t *trial) {
	long := strings.Repeat("x", 10_000)
	odd := []string{
		"", " ", "a", "A", "a ", "a:b", "{a}", "{}", "}{", "a\x00b", "a\x00", "\xff\xfe", "ä", "a\u0308", "key", "*", "a\r\nb",
		"::1", "192.0.2.1", long, long + "y", "nodes", "-1", "0",
	}
	name := t.key.Limiter
	var all []ratelimit.StoreKey
	for _, key := range odd {
		all = append(all, ratelimit.StoreKey{Limiter: name, Key: key}, ratelimit.StoreKey{Limiter: name + ":" + key, Key: "a"})
	}
	for _, pair := range [][2]string{{":a", "b"}, {"", "{a}:b"}, {"{a}", "b"}, {"{a", "}b"}, {"{", "a}b"}, {":", "b"}, {"", ":b"}} {
		all = append(all, ratelimit.StoreKey{Limiter: name + pair[0], Key: pair[1]})
	}
	for i, key := range all {
		q := ratelimit.Quota{Rate: ratelimit.PerHour(1), Burst: int64(100 + i)}
		if g := t.askOf(key, q, ratelimit.Ask{Min: q.Burst, Max: q.Burst}); g.Tokens != q.Burst {
			t.errorf("key %.40q of limiter %.60q is not full at first", key.Key, key.Limiter)
		}
	}
	t.want("the nodes of a limiter with such keys", t.beat(name, "a", time.Hour), int64(1))
}

func anotherQuotaKeepsTheLevel(t *trial) {
	t.take(hourly, 6)
	for _, q := range []ratelimit.Quota{
		{Rate: ratelimit.PerHour(7), Burst: 10},
		{Rate: ratelimit.PerDay(5), Burst: 1000},
		{Rate: ratelimit.PerHour(2), Burst: 20},
	} {
		// What a script loses when it counts in other units is less than a token.
		if left := t.left(q); left != 4 && left != 3 {
			t.errorf("with the quota %v %d are left, want 4", q, left)
		}
	}
	t.key.Key = "another"
	t.take(hourly, 6)
	t.want("what is left of 4 if there may be 2", t.ask(ratelimit.Quota{Rate: hourly.Rate, Burst: 2}, ratelimit.Ask{Min: 1, Max: 1}).Remaining, int64(1))
	t.want("what is left of them if there may be 10 again", t.left(hourly), int64(1))
}

func countsNodes(t *trial) {
	name := t.key.Limiter
	for i := range int64(5) {
		t.want("the nodes", t.beat(name, fmt.Sprint("node-", i), time.Hour), i+1)
	}
	t.want("the nodes when one beats again", t.beat(name, "node-2", time.Hour), int64(5))
	t.want("the nodes of another limiter", t.beat(name+"2", "node-2", time.Hour), int64(1))
	t.want("the nodes when one has said goodbye", t.beat(name, "node-4", 0), int64(4))
	t.want("the nodes when it says so again", t.beat(name, "node-4", 0), int64(4))
	t.want("the nodes when it is back", t.beat(name, "node-4", time.Hour), int64(5))
}

func forgetsSilentNodes(t *trial) {
	name := t.key.Limiter
	t.beat(name, "silent", 300*time.Millisecond)
	w := t.watch()
	n := t.beat(name, "other", time.Hour)
	if w.most() < 250*time.Millisecond {
		t.want("the nodes", n, int64(2))
	}
	t.pass(350 * time.Millisecond)
	t.want("the nodes when one has been silent", t.beat(name, "other", time.Hour), int64(1))
	t.beat(name, "silent", time.Hour)
	t.want("the nodes when it is back", t.beat(name, "other", time.Hour), int64(2))
}
