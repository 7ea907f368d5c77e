package ratelimit

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sluicego/sluice"
)

func TestKeyed_AllocatesNothing(t *testing.T) {
	rich := keyed(t, PerSecond(1_000_000_000), WithTopRejected(16), WithKeyClass("gold", PerSecond(2_000_000_000), Auto))
	poor := keyed(t, PerDay(1), WithBurst(1), WithTopRejected(16))
	denying, sharing, evicting := filled(t, DenyNew), filled(t, OverflowKey), filled(t, EvictLeastDebt)
	global, empty := sluice.Must(New("global", PerSecond(1_000_000_000))), sluice.Must(New("empty", PerDay(1), WithInitial(0)))
	poor.Allow("ann")
	poor.Allow2("ann", "/pay")
	key, next := append(make([]byte, 0, 32), "user "...), int64(0)
	gold := true
	for name, do := range map[string]func(){
		"admitted":              func() { rich.Take("ann", 1) },
		"admitted, two parts":   func() { rich.Take2("ann", "/pay", 1) },
		"refused":               func() { poor.Take("ann", 1) },
		"refused, two parts":    func() { poor.Allow2("ann", "/pay") },
		"never":                 func() { poor.Take("ann", 100) },
		"peek":                  func() { rich.Peek("ann", 1) },
		"debit":                 func() { rich.Debit("ann", 1) },
		"refund":                func() { rich.Refund("ann", rich.Take("ann", 1)) },
		"a class":               func() { rich.Class("gold").Allow("gus") },
		"from class to class":   func() { gold = !gold; rich.Class(map[bool]string{true: "gold"}[gold]).Allow("cleo") },
		"no slot":               func() { denying.Allow("new") },
		"no slot, peek":         func() { denying.Peek("new", 1) },
		"no slot, shared":       func() { sharing.Allow("new") },
		"a new key":             func() { next++; rich.Allow(string(strconv.AppendInt(key, next, 10))) },
		"a new key, an old one": func() { next++; evicting.Allow(string(strconv.AppendInt(key, next, 10))) },
		"numbers":               func() { d := poor.Take("ann", 1); d.Remaining(); d.RetryAfter(); d.ResetAfter(); d.Limit() },
		"layers":                func() { TakeAll(1, rich.By("ann"), rich.By2("ann", "/pay"), global.Layer()) },
		"layers, refused":       func() { TakeAll(1, rich.By("ann"), poor.By("ann"), global.Layer()) },
		"layers, given back":    func() { TakeAll(1, rich.By("ann"), rich.By2("ann", "/pay"), empty.Layer()) },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, do), name)
	}
}
