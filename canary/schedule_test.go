package canary

import (
	"context"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

var noon = time.Date(2026, time.September, 1, 12, 0, 0, 0, time.UTC)

func TestSchedule_Linear(t *testing.T) {
	s := sluice.Must(LinearSchedule(noon, time.Hour, 0, All))
	for _, tc := range []struct {
		after time.Duration
		want  Weight
	}{
		{-time.Hour, 0}, {0, 0}, {3600*time.Millisecond - 1, 0}, {3600 * time.Millisecond, PPM(1000)},
		{15 * time.Minute, Percent(25)}, {30 * time.Minute, Percent(50)}, {time.Hour - 1, Percent(99.9)}, {time.Hour, All}, {1000 * time.Hour, All},
	} {
		assert.Equal(t, tc.want, s.At(noon.Add(tc.after)), tc.after)
	}
	down := sluice.Must(LinearSchedule(noon, time.Hour, Percent(10), 0))
	assert.Equal(t, Percent(10), down.At(noon))
	assert.Equal(t, Percent(5), down.At(noon.Add(30*time.Minute)))
	assert.Equal(t, Weight(0), down.At(noon.Add(time.Hour)))
}

func TestSchedule_Exponential(t *testing.T) {
	s := sluice.Must(ExponentialSchedule(noon, time.Hour, Percent(1), All))
	for minute, want := range map[int]float64{0: 1, 15: math.Pow(100, 0.25), 30: 10, 45: math.Pow(100, 0.75), 60: 100} {
		assert.InDelta(t, want, 100*s.At(noon.Add(time.Duration(minute)*time.Minute)).Fraction(), 0.001)
	}
	down := sluice.Must(ExponentialSchedule(noon, time.Hour, All, PPM(1)))
	assert.InDelta(t, 1000, float64(down.At(noon.Add(30*time.Minute))), 1)
	assert.Equal(t, PPM(1), down.At(noon.Add(time.Hour)))
}

func TestSchedule_Steps(t *testing.T) {
	s := sluice.Must(StepSchedule(noon, SchedulePoint{0, Percent(1)}, SchedulePoint{time.Minute, Percent(5)}, SchedulePoint{time.Hour, 0}))
	for after, want := range map[time.Duration]Weight{
		-1: 0, 0: Percent(1), time.Minute - 1: Percent(1), time.Minute: Percent(5), time.Hour: 0, 1000 * time.Hour: 0,
	} {
		assert.Equal(t, want, s.At(noon.Add(after)), after)
	}
	at, ok := s.Next(noon.Add(-time.Hour))
	assert.True(t, ok)
	assert.Equal(t, noon, at)
	at, _ = s.Next(noon)
	assert.Equal(t, noon.Add(time.Minute), at)
	_, ok = s.Next(noon.Add(time.Hour))
	assert.False(t, ok)
}

func TestSchedule_Refuses(t *testing.T) {
	_, err := LinearSchedule(noon, 0, Percent(101), Percent(-1))
	for _, want := range []string{"canary: length 0s is not positive", "from: canary: weight 101%", "to: canary: weight -1%"} {
		assert.ErrorContains(t, err, want)
	}
	_, err = ExponentialSchedule(noon, time.Hour, 0, All)
	assert.ErrorContains(t, err, "canary: from 0% cannot be multiplied")
	_, err = StepSchedule(noon)
	assert.ErrorContains(t, err, "without points")
	_, err = StepSchedule(noon, SchedulePoint{time.Minute, 1}, SchedulePoint{time.Minute, Percent(0.00001)}, SchedulePoint{-1, 1})
	for _, want := range []string{"points[1].After 1m0s does not come after 1m0s", "points[1]: canary: weight 1e-05%", "points[2].After -1ns is negative"} {
		assert.ErrorContains(t, err, want)
	}
}

func TestSchedule_Zero(t *testing.T) {
	assert.Zero(t, Schedule{}.At(noon))
	_, ok := Schedule{}.Next(noon)
	assert.False(t, ok)
}

// Every weight lies within the ramp, none goes back, and Next says exactly when it
// changes.
func TestSchedule_GoesOneWay(t *testing.T) {
	for seed := range uint64(runs(200)) {
		rng := rand.New(rand.NewPCG(seed, 11))
		length := time.Duration(1 + rng.Int64N(1<<(4+rng.IntN(58))))
		from, to := Weight(1+rng.Uint32N(points)), Weight(1+rng.Uint32N(points))
		if rng.IntN(2) == 0 {
			from, to = Weight(1+rng.Uint32N(50)), Weight(1+rng.Uint32N(50))
		}
		ramp := LinearSchedule
		if seed%2 == 0 {
			ramp = ExponentialSchedule
		}
		s := sluice.Must(ramp(noon, length, from, to))
		require.Equal(t, from, s.At(noon))
		require.Equal(t, to, s.At(noon.Add(length)))
		at, changes := noon, 0
		for next, ok := s.Next(at); ok; next, ok = s.Next(at) {
			require.True(t, next.After(at))
			require.Equal(t, s.At(at), s.At(next.Add(-1)), "nothing changes before")
			require.NotEqual(t, s.At(at), s.At(next))
			require.Equal(t, to > from, s.At(next) > s.At(at))
			at = next
			changes++
		}
		require.Equal(t, to, s.At(at))
		require.LessOrEqual(t, changes, scheduleSteps)
	}
}

// The whole numbers are as good as the power: never off by more than a ppm.
func TestSchedule_ExponentialIsThePower(t *testing.T) {
	for seed := range uint64(runs(300)) {
		rng := rand.New(rand.NewPCG(seed, 12))
		from, to := Weight(1+rng.Uint32N(points)), Weight(1+rng.Uint32N(points))
		s := sluice.Must(ExponentialSchedule(noon, 1000, from, to))
		n := rng.Int64N(1000)
		want := float64(from) * math.Pow(float64(to)/float64(from), float64(n)/1000)
		assert.InDelta(t, want, float64(s.At(noon.Add(time.Duration(n)))), 1.01, "%v to %v, step %d", from, to, n)
	}
}

// Where the weights change, for any length: the arithmetic in big numbers.
func FuzzScheduleStep(f *testing.F) {
	f.Add(int64(time.Hour), int64(time.Minute))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64-1))
	f.Add(int64(1), int64(0))
	f.Fuzz(func(t *testing.T, length, since int64) {
		if length <= 0 || since < 0 || since > length {
			return
		}
		s := Schedule{length: time.Duration(length), steps: scheduleSteps}
		want := new(big.Int).Mul(big.NewInt(since), big.NewInt(scheduleSteps))
		want.Div(want, big.NewInt(length))
		n := s.step(time.Duration(since))
		if n != want.Int64() {
			t.Fatalf("step(%d of %d) = %d, want %v", since, length, n, want)
		}
		if begin := s.begin(n); s.step(begin) < n || begin > 0 && n > 0 && s.step(begin-1) >= n {
			t.Fatalf("step %d of %d begins at %d", n, length, begin)
		}
	})
}

func TestSchedule_Run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sluice.Must(New("checkout", "v1", WithVersion("v2", 0, 0)))
		start := time.Now().Add(10 * time.Minute)
		s := sluice.Must(LinearSchedule(start, time.Hour, 0, Percent(50)))
		done := make(chan error, 1)
		go func() { done <- s.Run(t.Context(), p, "v2") }()
		for _, step := range []struct {
			sleep time.Duration
			want  Weight
		}{{5 * time.Minute, 0}, {35 * time.Minute, Percent(25)}, {29*time.Minute + 59*time.Second, Percent(49.95)}, {2 * time.Second, Percent(50)}} {
			time.Sleep(step.sleep)
			synctest.Wait()
			assert.Equal(t, step.want, p.Share("v2"))
		}
		assert.NoError(t, <-done)
	})
}

func TestSchedule_RunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sluice.Must(New("checkout", "v1", WithVersion("v2", 0, 0)))
		s := sluice.Must(LinearSchedule(time.Now(), time.Hour, 0, Percent(50)))
		why := errors.New("shutdown")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 2)
		go func() { done <- s.Run(ctx, p, "v2") }()
		time.Sleep(time.Minute)
		cancel(why)
		assert.ErrorIs(t, <-done, why)

		go func() { done <- s.Run(t.Context(), p, "v2") }()
		time.Sleep(time.Minute)
		require.NoError(t, p.Rollback("v2", "by hand"))
		assert.ErrorIs(t, <-done, ErrRolledBack, "a schedule does not undo a rollback")
		assert.Zero(t, p.Share("v2"))
	})
}

// Who takes the weight away by hand must not find it back before the schedule has more to
// say.
func TestSchedule_RunLeavesWhatOthersDoUntilTheNextChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sluice.Must(StepSchedule(time.Now(), SchedulePoint{0, Percent(10)}, SchedulePoint{time.Hour, Percent(20)}))
		p := pickerOf(t, 0)
		done := make(chan error, 1)
		go func() { done <- s.Run(t.Context(), p, "c0") }()
		time.Sleep(time.Second)
		assert.Equal(t, Percent(10), p.Share("c0"))
		require.NoError(t, p.SetWeights(weightsOf(0)))
		time.Sleep(59*time.Minute + 58*time.Second)
		assert.Zero(t, p.Share("c0"))
		time.Sleep(2 * time.Second)
		assert.Equal(t, Percent(20), p.Share("c0"))
		require.NoError(t, <-done)
	})
}

func TestSchedule_RunDoesNothingAfterItsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := pickerOf(t, 0)
	require.ErrorIs(t, sluice.Must(LinearSchedule(noon, time.Hour, All, All)).Run(ctx, p, "c0"), context.Canceled)
	assert.Zero(t, p.Share("c0"))
}

// A start that was read from the clock has a reading of another clock with it, which must
// not count: a replica that has it from a file knows the date only.
func TestSchedule_GoesByTheDateAlone(t *testing.T) {
	start := time.Now()
	for _, s := range []Schedule{
		sluice.Must(LinearSchedule(start, time.Hour, 0, All)),
		sluice.Must(ExponentialSchedule(start, time.Hour, Percent(1), All)),
		sluice.Must(StepSchedule(start, SchedulePoint{0, All})),
	} {
		assert.Equal(t, start.Round(0), s.start)
	}
}
