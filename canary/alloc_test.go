package canary

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/stripe"
)

func TestPicksAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("needs a build without -race, which allocates")
	}
	plain := pickerOf(t, 100_000, 50_000)
	targeting := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(5)), WithTargeting(func(Input) string { return "" })))
	falling := pickerOf(t, 500_000)
	require.NoError(t, falling.RollbackOver("c0", "", 1<<40))
	g := sluice.Must(NewGroup("g", WithRoute("/a", "v1", WithVersion("v2", 0, Percent(5)))))
	f := sluice.Must(NewIdentifier(lookups))
	ids := []string{"u", "user-12345678901", "550e8400-e29b-41d4-a716-446655440000"}
	v := plain.Stable()
	var d Decision
	for name, do := range map[string]func(){
		"Pick":        func() { v = plain.Pick(ids[0]); v = plain.Pick(ids[1]); v = plain.Pick(ids[2]) },
		"PickRandom":  func() { v = plain.PickRandom() },
		"Decide":      func() { d = plain.Decide(Input{ID: ids[1], Source: FromUser}) },
		"no identity": func() { d = plain.Decide(Input{}) },
		"override":    func() { d = plain.Decide(Input{ID: ids[1], Override: "c0", Authorized: true}) },
		"refused": func() {
			d = plain.Decide(Input{ID: ids[1], Override: "c9", Target: "c8", Sticky: "c7", Authorized: true})
		},
		"sticky":       func() { d = plain.Decide(Input{ID: ids[1], Sticky: "c1"}) },
		"targeting":    func() { d = targeting.Decide(Input{ID: ids[1]}) },
		"falling":      func() { v = falling.Pick(ids[0]); v = falling.Pick(ids[1]) },
		"group":        func() { v = g.Get("/a").Pick(ids[0]); v = g.Get("/b").Pick(ids[0]) },
		"in flight":    func() { v.Enter(); v.Leave(); _ = v.InFlight() },
		"identify":     func() { _ = f.Identify(request{device: ids[1], address: "10.0.0.1"}) },
		"no identity2": func() { _ = f.Identify(request{user: "anonymous"}) },
		"ids":          func() { _ = IssuedID(ids[1]); _ = OneValue(ids) },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, do), name)
	}
	assert.NotNil(t, d.Version)
}

// Four words and four fields are what the compiler keeps in registers.
func TestDecisionsFitIntoRegisters(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Decision{}), uintptr(32))
	assert.LessOrEqual(t, reflect.TypeFor[Decision]().NumField(), 4)
	assert.Equal(t, uintptr(2*stripe.Line), unsafe.Sizeof(picks{}))
	assert.Equal(t, uintptr(stripe.Line), unsafe.Sizeof(flight{}))
}
