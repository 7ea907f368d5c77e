package adaptive

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSystem_ControllerSteps(t *testing.T) {
	var c controller
	now := t0
	step := func(e float64) float64 { now += int64(tickSystem); return c.step(now, e) }
	assert.InDelta(t, 0.3, step(1), 1e-9, "it answers at once")
	assert.InDelta(t, 0.35, step(1), 1e-9, "and goes on")
	for range 40 {
		step(1)
	}
	assert.InDelta(t, 0.95, step(1), 1e-9, "never more than 95 %%")
	assert.InDelta(t, 0.95-0.0125-0.075, step(-0.25), 1e-9, "it lets go at once: nothing is wound up")
	for range 100 {
		step(-1)
	}
	assert.Zero(t, step(-1))
	assert.InDelta(t, 0.35, step(1), 1e-9, "nor below 0")

	now += int64(time.Hour)
	assert.LessOrEqual(t, step(0.1), 0.05+0.05+0.03+1e-9, "an hour that was slept through is a second at most")
}

func TestSystem_SharesOfClasses(t *testing.T) {
	for name, c := range map[string]struct {
		seen [classes]float64
		p    float64
		want [classes]float64
	}{
		"nothing":             {[classes]float64{30, 50, 20}, 0, [classes]float64{}},
		"the last bear it":    {[classes]float64{30, 50, 20}, 0.1, [classes]float64{0, 0, 0.5}},
		"then the middle":     {[classes]float64{30, 50, 20}, 0.69, [classes]float64{0, 1, 0.95}},
		"the first come last": {[classes]float64{30, 50, 20}, 0.8, [classes]float64{0.45, 0.95, 0.95}},
		"at most":             {[classes]float64{30, 50, 20}, 0.95, [classes]float64{0.95, 0.95, 0.95}},
		"one class":           {[classes]float64{0, 100, 0}, 0.4, [classes]float64{0, 0.4, 0.95}},
		"only the first":      {[classes]float64{100, 0, 0}, 0.4, [classes]float64{0.4, 0.95, 0.95}},
		"not known":           {[classes]float64{5, 4, 0}, 0.4, [classes]float64{0, 0.4, 0.4}},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&mix{seen: c.seen}).shares(c.p, c.p)
			if name == "then the middle" { // 0.69 − 0.19 is all of the middle, which bears 0.95 of it
				c.want = [classes]float64{(0.69 - 0.19 - 0.475) / 0.3, 0.95, 0.95}
			}
			assert.InDeltaSlice(t, c.want[:], got[:], 1e-9)
		})
	}
}

// What answers to the moment alone is not borne by the most important calls.
func TestSystem_TheFirstClassBearsWhatLasts(t *testing.T) {
	m := mix{seen: [classes]float64{30, 50, 20}}
	assert.InDelta(t, 0.0, m.shares(0.8, 0.6)[0], 1e-9)
	assert.InDelta(t, 0.95, m.shares(0.8, 0.6)[1], 1e-9)
	assert.InDelta(t, (0.7-0.665)/0.3, m.shares(0.8, 0.7)[0], 1e-9)
	assert.InDelta(t, (0.8-0.665)/0.3, m.shares(0.8, 0.9)[0], 1e-9, "but never more than there is to bear")
}

// Whatever the mix: the less important bear more, nobody bears more than 95 %, and
// together they bear what is asked for.
func FuzzSystem_Shares(f *testing.F) {
	f.Add(uint16(30), uint16(50), uint16(20), uint16(333))
	f.Add(uint16(0), uint16(0), uint16(65535), uint16(950))
	f.Add(uint16(9), uint16(0), uint16(1), uint16(900))
	f.Fuzz(func(t *testing.T, p0, p1, p2, permille uint16) {
		m := mix{seen: [classes]float64{float64(p0), float64(p1), float64(p2)}}
		p := min(float64(permille)/1000, mostShed)
		of := m.shares(p, p)
		all, shed := 0.0, 0.0
		for class, n := range m.seen {
			all += n
			shed += n * of[class]
			if of[class] < 0 || of[class] > mostShed || class > 0 && of[class] < of[class-1] {
				t.Fatalf("%v of %v: %v", p, m.seen, of)
			}
		}
		if all >= enough && math.Abs(shed-p*all) > 1e-6*all {
			t.Fatalf("%v of %v: %v, which is %v", p, m.seen, of, shed/all)
		}
	})
}

// Sentinel, go-zero and aegis round to milliseconds: calls of 0.1 ms count as 1 ms, and
// the capacity is ten times too large.
func TestSystem_CapacityInNanoseconds(t *testing.T) {
	var tr traffic
	var c counts
	now := t0
	for range 30 {
		tr.add(now, c)
		now += int64(tickSystem)
		c.entered, c.succeeded = c.entered+2000, c.succeeded+2000
		c.successes = measured{c.succeeded, c.succeeded * int64(100*time.Microsecond)}
	}
	assert.InDelta(t, 2, tr.capacity(now).value, 0.01, "20 000 a second × 0.1 ms")
	qps, rt := tr.rates(now, &c)
	assert.InDelta(t, 20_000, qps.value, 1e-6)
	assert.InDelta(t, 0.0001, rt.value, 1e-9)
	assert.Equal(t, known(tr.capacity(now).value), tr.capacity(now+int64(9*time.Second)), "the best of ten seconds")
	assert.False(t, tr.capacity(now+int64(11*time.Second)).known, "older ones are forgotten")
	assert.False(t, (&traffic{}).capacity(now).known)
}

// One call that was answered from a cache in no time must not make the capacity nothing.
func TestSystem_CapacityIsNotThatOfOneLuckyCall(t *testing.T) {
	var tr traffic
	var c counts
	now := t0
	for range 30 {
		tr.add(now, c)
		now += int64(tickSystem)
		c.succeeded += 101
		c.successes = measured{c.succeeded, c.successes.time + 100*int64(10*ms) + 1000}
	}
	assert.InDelta(t, 10, tr.capacity(now).value, 0.2)
}
