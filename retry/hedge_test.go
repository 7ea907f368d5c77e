package retry

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/stage"
)

// hedger makes one with no bound but its own.
func hedger(t testing.TB, delay time.Duration, opts ...HedgerOption) *Hedger {
	t.Helper()
	h, err := NewHedger("payments", delay, append([]HedgerOption{WithHedgeBudget(nil)}, opts...)...)
	require.NoError(t, err)
	return h
}

// An end is how one attempt goes: how long it takes, whether it looks at its ctx, and
// what it then does.
type end struct {
	takes  time.Duration
	deaf   bool
	err    error
	panics any
	exits  bool
}

// A duel is a hedged call whose attempts end as they are told, in a bubble of its own.
// Results are the numbers of the attempts.
type duel struct {
	t         *testing.T
	h         *Hedger
	ends      [2]end
	began     time.Time
	mu        sync.Mutex
	calls     []time.Duration
	ctx       [2]context.Context
	succeeded int
	discarded []int
}

func (d *duel) call(ctx context.Context) (int, error) {
	n := AttemptOf(ctx)
	d.mu.Lock()
	d.calls = append(d.calls, time.Since(d.began))
	d.ctx[n-1] = ctx
	d.mu.Unlock()
	e := d.ends[n-1]
	if e.deaf {
		time.Sleep(e.takes)
	} else {
		select {
		case <-time.After(e.takes):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	switch {
	case e.panics != nil:
		panic(e.panics)
	case e.exits:
		runtime.Goexit()
	case e.err == nil:
		d.mu.Lock()
		d.succeeded++
		d.mu.Unlock()
		return n, nil
	}
	return -n, e.err
}

func (d *duel) discard(v int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.discarded = append(d.discarded, v)
}

// run makes the call, and returns what it returned and after how long.
func (d *duel) run(ctx context.Context) (v int, took time.Duration, err error) {
	d.began = time.Now()
	v, err = Hedge(ctx, d.h, d.call, d.discard)
	took = time.Since(d.began)
	synctest.Wait() // what the attempts have written can be read
	return v, took, err
}

const forHours = time.Hour

// quiet waits in a bubble until whoever is still out has come in.
func quiet() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

func TestHedge_Endings(t *testing.T) {
	errOther := errors.New("other")
	throttled := sluice.Mark(errOther, sluice.Throttled)
	answer := sluice.Mark(errOther, sluice.Success)
	type want struct {
		value     int
		err       error
		took      time.Duration
		calls     int
		discarded []int
	}
	for name, c := range map[string]struct {
		first, second end
		want          want
	}{
		"the first is quick":              {end{takes: 9 * tick}, end{}, want{value: 1, took: 9 * tick, calls: 1}},
		"the second is quicker":           {end{takes: forHours}, end{takes: 5 * tick}, want{value: 2, took: 15 * tick, calls: 2}},
		"the first comes in time":         {end{takes: 14 * tick}, end{takes: 5 * tick}, want{value: 1, took: 14 * tick, calls: 2}},
		"a first that hears nothing":      {end{takes: 40 * tick, deaf: true}, end{takes: 5 * tick}, want{value: 2, took: 15 * tick, calls: 2, discarded: []int{1}}},
		"a second that hears nothing":     {end{takes: 14 * tick}, end{takes: 40 * tick, deaf: true}, want{value: 1, took: 14 * tick, calls: 2, discarded: []int{2}}},
		"the first fails before":          {end{takes: 9 * tick, err: errDown}, end{}, want{value: -1, err: errDown, took: 9 * tick, calls: 1}},
		"the first fails, the second not": {end{takes: 12 * tick, err: errDown}, end{takes: 5 * tick}, want{value: 2, took: 15 * tick, calls: 2}},
		"the second fails, the first not": {end{takes: 20 * tick}, end{takes: 5 * tick, err: errDown}, want{value: 1, took: 20 * tick, calls: 2}},
		"the second is refused":           {end{takes: 20 * tick}, end{err: errOpen}, want{value: 1, took: 20 * tick, calls: 2}},
		"the second is throttled":         {end{takes: 20 * tick}, end{err: throttled}, want{value: 1, took: 20 * tick, calls: 2}},
		"both fail, the first first":      {end{takes: 12 * tick, err: errDown}, end{takes: 5 * tick, err: errOther}, want{value: -1, err: errDown, took: 15 * tick, calls: 2}},
		"both fail, the second first":     {end{takes: 20 * tick, err: errDown}, end{takes: 5 * tick, err: errOther}, want{value: -1, err: errDown, took: 20 * tick, calls: 2}},
		"the first is refused late":       {end{takes: 12 * tick, err: errOpen}, end{takes: 5 * tick, err: errOther}, want{value: -2, err: errOther, took: 15 * tick, calls: 2}},
		"both are refused":                {end{takes: 12 * tick, err: errOpen}, end{takes: 5 * tick, err: errOpen}, want{value: -2, err: errOpen, took: 15 * tick, calls: 2}},
		"the second has an answer":        {end{takes: forHours}, end{takes: 5 * tick, err: answer}, want{value: -2, err: answer, took: 15 * tick, calls: 2}},
		"the first has an answer":         {end{takes: 12 * tick, err: answer}, end{takes: 5 * tick}, want{value: -1, err: answer, took: 12 * tick, calls: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &duel{t: t, h: hedger(t, 10*tick), ends: [2]end{c.first, c.second}}
				v, took, err := d.run(t.Context())
				assert.Equal(t, c.want.value, v)
				assert.Equal(t, c.want.err, err)
				assert.Equal(t, c.want.took, took)
				require.Len(t, d.calls, c.want.calls)
				if c.want.calls == 2 {
					assert.Equal(t, 10*tick, d.calls[1])
				}
				quiet()
				assert.Equal(t, c.want.discarded, d.discarded)
				for i, ctx := range d.ctx {
					if ctx != nil && !(err == nil && i == v-1) {
						assert.Error(t, ctx.Err(), "the ctx of every other attempt has ended")
					}
				}
				s := d.h.Snapshot()
				assert.EqualValues(t, c.want.calls-1, s.Hedges)
				won := int64(0)
				if v == 2 || err == answer && v == -2 {
					won = 1
				}
				assert.Equal(t, won, s.Won)
			})
		})
	}
}

// A loser can see that it has lost, and a breaker around it does not blame the
// dependency for that.
func TestHedge_TheLoserIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &duel{t: t, h: hedger(t, 10*tick), ends: [2]end{{takes: forHours}, {takes: 5 * tick}}}
		_, _, _ = d.run(t.Context())
		lost := d.ctx[0]
		assert.Equal(t, context.Canceled, lost.Err())
		assert.EqualError(t, context.Cause(lost), "retry: another attempt has won")
		assert.Equal(t, sluice.Ignored, sluice.Classify(lost, lost.Err()))
	})
}

// https://github.com/cristalhq/hedgedhttp/issues/7 and
// https://github.com/failsafe-go/failsafe-go/issues/123: the context of a response was
// cancelled when its headers had come, and the body broke off. Something that is given
// back keeps its ctx until whoever asked for it is done; a plain value does not.
func TestHedge_TheCtxOfTheWinner(t *testing.T) {
	for name, second := range map[string]bool{"the first": false, "the second": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ends := [2]end{{takes: 14 * tick}, {takes: 100 * tick}}
				if second {
					ends[0].takes = forHours
				}
				ctx, cancel := context.WithCancel(t.Context())
				d := &duel{t: t, h: hedger(t, 10*tick), ends: ends}
				v, _, err := d.run(ctx)
				require.NoError(t, err)
				quiet()
				assert.NoError(t, d.ctx[v-1].Err(), "reading on")
				cancel()
				assert.Equal(t, context.Canceled, d.ctx[v-1].Err())

				d = &duel{t: t, h: hedger(t, 10*tick), ends: ends}
				v, err = Hedge(t.Context(), d.h, d.call, nil)
				require.NoError(t, err)
				synctest.Wait()
				assert.Error(t, d.ctx[v-1].Err())
			})
		})
	}
}

// https://github.com/grpc/grpc-java/issues/7222: the first attempt had failed at once,
// the second was not allowed, and the call hung until its deadline. And if the first is
// only slow, it is waited for.
func TestHedge_AThrottledHedgeFallsBackToTheOriginal(t *testing.T) {
	for name, c := range map[string]struct {
		first end
		err   error
		took  time.Duration
	}{
		"which is slow":        {end{takes: 50 * tick}, nil, 50 * tick},
		"which fails late":     {end{takes: 50 * tick, err: errDown}, errDown, 50 * tick},
		"which failed at once": {end{err: errDown}, errDown, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				empty, err := NewBudget("payments", WithRatio(0), WithMinPerSecond(0))
				require.NoError(t, err)
				for what, h := range map[string]*Hedger{
					"throttled": hedger(t, 10*tick, WithHedgeBudget(empty)),
					"withheld":  hedger(t, 10*tick, WithHedgeIf(func() bool { return false })),
				} {
					d := &duel{t: t, h: h, ends: [2]end{c.first, {}}}
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					_, took, err := d.run(ctx)
					cancel()
					assert.Equal(t, c.err, err, what)
					assert.Equal(t, c.took, took, what)
					assert.Len(t, d.calls, 1, what)
					s := h.Snapshot()
					assert.Zero(t, s.Hedges)
					if c.took > 0 {
						assert.EqualValues(t, 1, s.Throttled+s.Withheld)
						assert.Equal(t, what == "throttled", s.Throttled == 1)
					}
				}
			})
		})
	}
}

// A second attempt that was refused further in is not charged, whether or not anybody
// still waits for it.
func TestHedge_ARefusedHedgeIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, second := range []end{{err: errOpen}, {takes: 30 * tick, deaf: true, err: errOpen}} {
			h := hedger(t, 10*tick, WithHedgeBudget(budgetNow(t)))
			d := &duel{t: t, h: h, ends: [2]end{{takes: 20 * tick}, second}}
			v, _, err := d.run(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 1, v)
			quiet()
			s := h.Budget().Snapshot()
			assert.EqualValues(t, 1, s.Withdrawals)
			assert.EqualValues(t, 1, s.Returned)
		}
	})
}

// budgetNow makes a budget of the present time.
func budgetNow(t testing.TB, opts ...BudgetOption) *Budget {
	t.Helper()
	b, err := NewBudget("payments", opts...)
	require.NoError(t, err)
	return b
}

// Each call is counted once in the budget, however it ends; one that was not made is
// not.
func TestHedge_DepositsEachCallOnce(t *testing.T) {
	for name, c := range map[string]struct {
		first, second end
		want          uint64
	}{
		"quick":             {end{}, end{}, 1},
		"hedged":            {end{takes: 20 * tick}, end{takes: 5 * tick}, 1},
		"fails":             {end{err: errDown}, end{}, 1},
		"refused":           {end{err: errOpen}, end{}, 0},
		"the second is":     {end{takes: 20 * tick}, end{err: errOpen}, 1},
		"the caller leaves": {end{takes: forHours}, end{takes: forHours}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hedger(t, 10*tick, WithHedgeBudget(budgetNow(t)))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				d := &duel{t: t, h: h, ends: [2]end{c.first, c.second}}
				_, _, _ = d.run(ctx)
				assert.Equal(t, c.want, h.Budget().Snapshot().Deposits)
			})
		})
	}
}

// The condition is asked when the time has come, and not before.
func TestHedge_If(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Bool
		asked := 0
		h := hedger(t, 10*tick, WithHedgeIf(func() bool { asked++; return !open.Load() }))
		run := func(first time.Duration) int {
			d := &duel{t: t, h: h, ends: [2]end{{takes: first}, {takes: tick}}}
			v, _, err := d.run(t.Context())
			require.NoError(t, err)
			return v
		}
		assert.Equal(t, 1, run(5*tick))
		assert.Zero(t, asked)
		assert.Equal(t, 2, run(50*tick))
		time.AfterFunc(5*tick, func() { open.Store(true) })
		assert.Equal(t, 1, run(50*tick))
		assert.Equal(t, 2, asked)
	})
}

// The measured delay counts up to the fixed one (CASSANDRA-14293: one bad host dragged
// the percentile up, and nothing was speculated on any more when it was needed). While
// nothing is measured, nothing is hedged.
func TestHedge_MeasuredDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var measured time.Duration
		asked := 0
		h := hedger(t, 30*tick, WithHedgeDelay(func() time.Duration { asked++; return measured }))
		for _, c := range []struct{ measured, at time.Duration }{
			{20 * tick, 20 * tick}, {1, 1}, {30 * tick, 30 * tick}, {time.Hour, 30 * tick}, {1<<63 - 1, 30 * tick},
			{0, -1}, {-1, -1}, {-1 << 63, -1},
		} {
			measured = c.measured
			d := &duel{t: t, h: h, ends: [2]end{{takes: 50 * tick}, {takes: 50 * tick}}}
			v, took, err := d.run(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 1, v)
			assert.Equal(t, 50*tick, took)
			if c.at < 0 {
				assert.Lenf(t, d.calls, 1, "measured %v", c.measured)
				assert.Equal(t, t.Context(), d.ctx[0], "just run")
				continue
			}
			require.Lenf(t, d.calls, 2, "measured %v", c.measured)
			assert.Equalf(t, c.at, d.calls[1], "measured %v", c.measured)
		}
		assert.Equal(t, 8, asked)
	})
}

// Calls that are to be made once run on the goroutine of their caller, with its ctx.
func TestHedge_NotAtAll(t *testing.T) {
	type key struct{}
	for name, c := range map[string]struct {
		h   *Hedger
		ctx context.Context
	}{
		"nil":               {nil, t.Context()},
		"a further attempt": {hedger(t, 1), withAttempt(t.Context(), 2)},
		"without retries":   {hedger(t, 1), WithoutRetries(t.Context())},
		"a probe":           {hedger(t, 1), stage.WithProbe(t.Context())},
		"bypassed":          {hedger(t, 1), sluice.Bypass(t.Context())},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := context.WithValue(c.ctx, key{}, 1)
				calls := 0
				v, err := Hedge(ctx, c.h, func(got context.Context) (int, error) {
					assert.Equal(t, ctx, got)
					calls++ // by this goroutine alone
					time.Sleep(time.Hour)
					return 7, errDown
				}, nil)
				assert.Equal(t, 7, v)
				assert.Equal(t, errDown, err)
				assert.Equal(t, 1, calls)
				assert.PanicsWithValue(t, "no", func() {
					_, _ = Hedge(ctx, c.h, func(context.Context) (int, error) { panic("no") }, nil)
				})
			})
		})
	}
}

func TestHedge_CtxDoneBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Hedge(ctx, hedger(t, 1), func(context.Context) (int, error) { t.Error("called"); return 0, nil }, nil)
	assert.Equal(t, context.Canceled, err)
}

// When the caller's time is over he gets an answer at once, and what still comes is
// given back.
func TestHedge_CtxEnds(t *testing.T) {
	for name, c := range map[string]struct {
		ends      [2]end
		is        error
		discarded []int
	}{
		"both listen":       {[2]end{{takes: forHours}, {takes: forHours}}, nil, nil},
		"neither does":      {[2]end{{takes: time.Second, deaf: true}, {takes: time.Second, deaf: true}}, nil, []int{1, 2}},
		"one has failed":    {[2]end{{takes: 12 * tick, err: errDown}, {takes: time.Second, deaf: true}}, errDown, []int{2}},
		"one was refused":   {[2]end{{takes: time.Second, deaf: true}, {err: errOpen}}, nil, []int{1}},
		"before the second": {[2]end{{takes: time.Second, deaf: true}}, nil, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := 20 * tick
				if name == "before the second" {
					limit = 5 * tick
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				d := &duel{t: t, h: hedger(t, 10*tick), ends: c.ends}
				v, took, err := d.run(ctx)
				assert.Zero(t, v)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.NotErrorIs(t, err, sluice.ErrRejected)
				if c.is != nil {
					assert.ErrorIs(t, err, c.is)
				}
				assert.Equal(t, limit, took)
				quiet()
				assert.ElementsMatch(t, c.discarded, d.discarded)
			})
		})
	}
}

// A panic comes to whoever waits for the call, whichever attempt it was, and so does
// the end of the goroutine. The other attempt is told to end, and given back.
func TestHedge_PanicAndGoexit(t *testing.T) {
	bang := end{takes: 15 * tick, panics: io.EOF}
	exit := end{takes: 15 * tick, exits: true}
	slow := end{takes: 60 * tick, deaf: true}
	for name, ends := range map[string][2]end{
		"the first panics":     {bang, slow},
		"the second panics":    {slow, {takes: 5 * tick, panics: io.EOF}},
		"before the second":    {{panics: io.EOF}, slow},
		"the first exits":      {exit, slow},
		"the second exits":     {slow, {takes: 5 * tick, exits: true}},
		"exits without second": {{exits: true}, slow},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &duel{t: t, h: hedger(t, 10*tick), ends: ends}
				came := make(chan any, 1)
				go func() {
					normal := false
					defer func() {
						if p := recover(); p != nil {
							came <- p
						} else if !normal {
							came <- "exited"
						}
					}()
					_, _, _ = d.run(t.Context())
					normal = true
					came <- "returned"
				}()
				got := <-came
				synctest.Wait()
				if ends[0].exits || ends[1].exits {
					assert.Equal(t, "exited", got)
				} else {
					assert.Equal(t, io.EOF, got, "the value as it was")
				}
				assert.Zero(t, d.h.Snapshot().Won, "a panic is no answer")
				for _, ctx := range d.ctx {
					if ctx != nil {
						assert.Error(t, ctx.Err())
					}
				}
				quiet()
				assert.Equal(t, d.succeeded, len(d.discarded))
				assert.Zero(t, d.h.Snapshot().Panics)
			})
		})
	}
}

// Nobody waits for a loser. Its panic ends no stranger's process, nor does one in
// discard; they are counted.
func TestHedge_PanicOfALoser(t *testing.T) {
	for name, c := range map[string]struct {
		loser  end
		panics int64
	}{
		"panics":   {end{takes: 60 * tick, deaf: true, panics: "late"}, 1},
		"exits":    {end{takes: 60 * tick, deaf: true, exits: true}, 0},
		"discards": {end{takes: 60 * tick, deaf: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &duel{t: t, h: hedger(t, 10*tick), ends: [2]end{c.loser, {takes: 5 * tick}}}
				d.began = time.Now()
				v, err := Hedge(t.Context(), d.h, d.call, func(int) { panic("discard") })
				require.NoError(t, err)
				assert.Equal(t, 2, v)
				quiet()
				assert.Equal(t, c.panics, d.h.Snapshot().Panics)
			})
		})
	}
}

// brokenError panics when it is looked into: the typed nil that a func returns as an
// error.
type brokenError struct{ inner error }

func (e *brokenError) Error() string { return "broken" }
func (e *brokenError) Unwrap() error { return e.inner }

// An error whose methods panic is a panic of the attempt that returned it.
func TestHedge_AnErrorThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken *brokenError
		d := &duel{t: t, h: hedger(t, 10*tick), ends: [2]end{{takes: 20 * tick, err: broken}, {takes: 60 * tick}}}
		assert.Panics(t, func() { _, _, _ = d.run(t.Context()) })
	})
}

// A condition that panics does so on the goroutine of the caller. What an attempt has
// or will have is given back, even if it had won in that moment.
func TestHedge_AConditionThatPanics(t *testing.T) {
	for name, first := range map[string]end{"later": {takes: 60 * tick, deaf: true}, "in that moment": {takes: 10*tick + 1, deaf: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &duel{t: t, ends: [2]end{first, {}}}
				d.h = hedger(t, 10*tick, WithHedgeIf(func() bool {
					time.Sleep(2 * time.Nanosecond)
					synctest.Wait() // the first has come in, if it is to
					panic("no")
				}))
				assert.PanicsWithValue(t, "no", func() { _, _, _ = d.run(t.Context()) })
				synctest.Wait()
				assert.Error(t, d.ctx[0].Err())
				quiet()
				assert.Equal(t, []int{1}, d.discarded)
			})
		})
	}
}

// https://github.com/authzed/spicedb/issues/235: attempts that nobody waited for hung
// on a channel, 44 000 of them. Here every result that was produced is either returned
// or discarded, once, and no goroutine is left; the bubble would not end.
func TestHedge_Conservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budgetNow(t, WithRatio(0.5))
		h := hedger(t, 5*tick, WithHedgeBudget(b))
		var produced, returned, discarded, second, made atomic.Int64
		var out sync.Map // results that are not given back
		var next atomic.Int64
		var all sync.WaitGroup
		for i := range uint64(8) {
			all.Go(func() {
				r := rand.New(rand.NewPCG(i, 7))
				for range rounds(800) {
					draws := [2]int{r.IntN(12), r.IntN(12)}
					deaf, fails, leaves := r.IntN(3) == 0, r.IntN(5) == 0, r.IntN(6) == 0
					ctx, cancel := context.WithCancel(t.Context())
					if leaves {
						time.AfterFunc(time.Duration(r.IntN(10))*tick, cancel)
					}
					v, err := Hedge(ctx, h, func(ctx context.Context) (int64, error) {
						n := AttemptOf(ctx)
						if n == 1 {
							made.Add(1)
						} else {
							second.Add(1)
						}
						d := time.Duration(draws[n-1]) * tick
						if deaf {
							time.Sleep(d)
						} else {
							select {
							case <-time.After(d):
							case <-ctx.Done():
								return 0, ctx.Err()
							}
						}
						if fails && n == 1 {
							return 0, errDown
						}
						produced.Add(1)
						v := next.Add(1)
						out.Store(v, true)
						return v, nil
					}, func(v int64) {
						discarded.Add(1)
						if _, there := out.LoadAndDelete(v); !there {
							t.Errorf("%d was given back twice", v)
						}
					})
					if err == nil {
						returned.Add(1)
						if _, there := out.LoadAndDelete(v); !there {
							t.Errorf("%d was given back twice", v)
						}
					}
					cancel()
				}
			})
		}
		all.Wait()
		quiet()
		assert.Equal(t, produced.Load(), returned.Load()+discarded.Load())
		out.Range(func(v, _ any) bool { t.Errorf("%v is lost", v); return false })
		s := b.Snapshot()
		assert.EqualValues(t, made.Load(), s.Deposits)
		assert.Equal(t, second.Load(), s.Withdrawals)
		assert.Equal(t, second.Load(), h.Snapshot().Hedges)
		assert.Positive(t, second.Load())
		assert.Positive(t, discarded.Load())
	})
}

func TestHedger_UpdateAndNil(t *testing.T) {
	h := hedger(t, time.Second)
	assert.Equal(t, "payments", h.Name())
	require.NoError(t, h.Update(HedgerConfig{time.Minute}))
	assert.ErrorContains(t, h.Update(HedgerConfig{}), "Delay 0s is not positive")
	assert.Equal(t, HedgerConfig{time.Minute}, h.Config())
	var none *Hedger
	assert.NoError(t, none.Update(HedgerConfig{1}))
	assert.Error(t, none.Update(HedgerConfig{}))
	assert.Equal(t, HedgerConfig{}, none.Config())
	assert.Empty(t, none.Name())
	assert.Nil(t, none.Budget())
	assert.Equal(t, HedgerSnapshot{}, none.Snapshot())
}
