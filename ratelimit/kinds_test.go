package ratelimit

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/stage"
	"github.com/sluicego/sluice/metrics"
)

// A kind is what every kind of limiter does.
type kind interface {
	sluice.Guard
	stage.Stage
	metrics.Source
	Name() string
	Allow() bool
	AllowN(n int64) bool
	Take(n int64) Decision
	Peek(n int64) Decision
	Refund(d Decision)
	Wait(ctx context.Context) error
	WaitN(ctx context.Context, n int64) error
}

// layered are the kinds that can be a Layer.
type layered interface {
	kind
	Layer() Layer
}

// kinds makes one of each, of so many tokens in so long a time, all of which can be
// taken at once.
var kinds = map[string]func(limit Rate, opts ...Option) (kind, error){
	"Limiter": func(r Rate, opts ...Option) (kind, error) { return New("test", r, opts...) },
	"SlidingWindow": func(r Rate, opts ...Option) (kind, error) {
		return NewSlidingWindow("test", r, as[SlidingWindowOption](opts)...)
	},
	"counting SlidingWindow": func(r Rate, opts ...Option) (kind, error) {
		return NewSlidingWindow("test", r, append(as[SlidingWindowOption](opts), WithRejectedCounted())...)
	},
	"SlidingLog": func(r Rate, opts ...Option) (kind, error) {
		return NewSlidingLog("test", r, as[SlidingLogOption](opts)...)
	},
	"counting SlidingLog": func(r Rate, opts ...Option) (kind, error) {
		return NewSlidingLog("test", r, append(as[SlidingLogOption](opts), WithRejectedCounted())...)
	},
	"StrictWindow": func(r Rate, opts ...Option) (kind, error) {
		return NewStrictWindow("test", r, append(as[StrictWindowOption](opts), WithShare(1))...)
	},
	"WarmUp": func(r Rate, opts ...Option) (kind, error) {
		return NewWarmUp("test", r, time.Minute, append(as[WarmUpOption](opts), WithBurst(max(1, min(r.Tokens, r.within(maxWarmFill)))))...)
	},
	"Pacer": func(r Rate, opts ...Option) (kind, error) {
		return NewPacer("test", r, append(append([]PacerOption{WithMaxWait(time.Hour)}, as[PacerOption](opts)...), WithSlack(max(0, r.Tokens-1)))...)
	},
}

// penalises reports whether a kind counts calls that are refused, so that each refusal
// is another one.
func penalises(name string) bool { return strings.HasPrefix(name, "counting") }

// as gives options of a Limiter to another kind.
func as[O any](opts []Option) (out []O) {
	for _, o := range opts {
		out = append(out, any(o).(O))
	}
	return out
}

// forKinds runs a test for each kind.
func forKinds(t *testing.T, test func(t *testing.T, name string, make func(limit Rate, opts ...Option) kind)) {
	for name, build := range kinds {
		t.Run(name, func(t *testing.T) {
			test(t, name, func(limit Rate, opts ...Option) kind {
				k, err := build(limit, opts...)
				require.NoError(t, err)
				return k
			})
		})
	}
}

// Who waits exactly as long as he was told gets what he wanted, and a nanosecond sooner
// he does not; and when all is said to be back, it is.
func TestKinds_RetryAfterIsExact(t *testing.T) {
	steps := 200
	if testing.Short() {
		steps = 60
	}
	forKinds(t, func(t *testing.T, name string, build func(Rate, ...Option) kind) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(16, 0))
			for _, limit := range []Rate{{5, time.Second}, {7, 97 * time.Microsecond}, {3, time.Hour}, {11, day}} {
				k := build(limit)
				full := k.Peek(0).Remaining()
				for range steps {
					time.Sleep(time.Duration(r.Int64N(int64(limit.Per)/limit.Tokens + 1)))
					n := 1 + r.Int64N(min(3, full))
					d := k.Take(n)
					if r.IntN(20) == 0 {
						time.Sleep(d.ResetAfter() - min(1, d.ResetAfter()))
						if d.ResetAfter() > 0 {
							assert.False(t, full == k.Peek(0).Remaining() && k.Peek(0).ResetAfter() == 0, "not all is back yet")
						}
						time.Sleep(min(1, d.ResetAfter()))
						assert.Equal(t, full, k.Peek(0).Remaining(), "%v: all is back", limit)
						continue
					}
					if d.OK() {
						assert.Zero(t, d.RetryAfter())
						continue
					}
					require.Positive(t, d.RetryAfter())
					time.Sleep(d.RetryAfter() - 1)
					require.False(t, k.Peek(n).OK(), "%v: a nanosecond too soon", limit)
					if !penalises(name) {
						require.Equal(t, time.Duration(1), k.Peek(n).RetryAfter())
					}
					time.Sleep(time.Nanosecond)
					require.True(t, k.Take(n).OK(), "%v: in time", limit)
				}
			}
		})
	})
}

func TestKinds_Never(t *testing.T) {
	forKinds(t, func(t *testing.T, _ string, build func(Rate, ...Option) kind) {
		k := build(Rate{3, time.Hour})
		capacity := k.Peek(0).Capacity()
		for _, n := range []int64{capacity + 1, math.MaxInt64, -1, math.MinInt64} {
			for _, d := range []Decision{k.Take(n), k.Peek(n)} {
				assert.False(t, d.OK())
				assert.True(t, d.Never())
				assert.EqualValues(t, -1, d.RetryAfter())
				assert.GreaterOrEqual(t, d.Remaining(), int64(0))
			}
			assert.Error(t, k.WaitN(t.Context(), n))
		}
		assert.EqualValues(t, 3, k.Peek(0).Remaining(), "nothing was taken, and no penalty given")
		assert.ErrorIs(t, k.Take(capacity+1).Err(), ErrExceedsCapacity)
	})
}

func TestKinds_UnlimitedAndBlocked(t *testing.T) {
	forKinds(t, func(t *testing.T, _ string, build func(Rate, ...Option) kind) {
		free := build(Unlimited())
		for _, n := range []int64{0, 1, math.MaxInt64} {
			d := free.Take(n)
			assert.True(t, d.OK())
			assert.Equal(t, int64(math.MaxInt64), d.Remaining())
			assert.Equal(t, int64(math.MaxInt64), d.Capacity())
			assert.Zero(t, d.ResetAfter())
			free.Refund(d)
		}
		assert.True(t, free.Allow() && !free.AllowN(-1))
		assert.NoError(t, free.Do(t.Context(), nothing))
		assert.NoError(t, free.Wait(t.Context()))

		shut := build(Blocked())
		for _, n := range []int64{1, math.MaxInt64} {
			d := shut.Take(n)
			assert.True(t, d.Never())
			assert.Zero(t, d.Remaining())
			assert.Zero(t, d.ResetAfter())
			assert.Equal(t, ReasonBlocked, d.Err().(*LimitError).Reason())
			assert.ErrorIs(t, shut.WaitN(t.Context(), n), ErrLimited)
		}
		assert.ErrorIs(t, shut.Do(t.Context(), nothing), ErrLimited)
		assert.True(t, shut.Take(0).OK())
		assert.NotPanics(t, func() { shut.Refund(shut.Take(0)); json.Marshal(shut.View()) })
	})
}

func TestKinds_NilLetsEverythingPass(t *testing.T) {
	for name, k := range map[string]kind{
		"SlidingWindow": (*SlidingWindow)(nil), "SlidingLog": (*SlidingLog)(nil), "StrictWindow": (*StrictWindow)(nil), "WarmUp": (*WarmUp)(nil), "Pacer": (*Pacer)(nil),
	} {
		assert.True(t, k.Allow() && k.AllowN(-1) && k.Take(5).OK() && k.Peek(1).OK(), name)
		assert.Equal(t, int64(math.MaxInt64), k.Take(1).Remaining(), name)
		k.Refund(k.Take(1))
		assert.NoError(t, k.Wait(t.Context()), name)
		assert.NoError(t, k.Do(t.Context(), nothing), name)
		_, err := sluice.Call(t.Context(), k, value)
		assert.NoError(t, err, name)
		assert.Equal(t, errDown, k.Do(t.Context(), func(context.Context) error { return errDown }), name)
		assert.Empty(t, k.Name(), name)
		k.Collect(func(metrics.Sample) bool { t.Error(name, "has nothing to show"); return true })
		assert.NotNil(t, k.View(), name)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		assert.Equal(t, context.Canceled, k.Wait(gone), name)
		if l, ok := k.(layered); ok {
			assert.Equal(t, Layer{}, l.Layer(), name)
		}
	}
	assert.NoError(t, (*SlidingWindow)(nil).Update(windowConfigOf(PerSecond(1))))
	assert.NoError(t, (*SlidingLog)(nil).Update(SlidingLogConfig(windowConfigOf(PerSecond(1)))))
	assert.Error(t, (*StrictWindow)(nil).Update(StrictWindowConfig{}), "a nil limiter still says what is wrong")
	assert.Error(t, (*WarmUp)(nil).Update(WarmUpConfig{}))
	assert.Error(t, (*Pacer)(nil).Update(PacerConfig{}))
	assert.Zero(t, (*SlidingWindow)(nil).Config())
	assert.Zero(t, (*SlidingLog)(nil).Config())
	assert.Zero(t, (*StrictWindow)(nil).Config())
	assert.Zero(t, (*WarmUp)(nil).Config())
	assert.Zero(t, (*Pacer)(nil).Config())
}

func windowConfigOf(limit Rate) SlidingWindowConfig {
	c := DefaultSlidingWindowConfig()
	c.Limit = limit
	return c
}

// A refund at once leaves nothing behind; one of a decision that only looked, that was
// refused or that another limiter made, does nothing.
func TestKinds_Refund(t *testing.T) {
	forKinds(t, func(t *testing.T, name string, build func(Rate, ...Option) kind) {
		k := build(Rate{5, time.Hour})
		require.True(t, k.Allow())
		before := k.Peek(0).Remaining()
		for range 3 {
			d := k.Take(2)
			require.True(t, d.OK())
			k.Refund(d)
			assert.Equal(t, before, k.Peek(0).Remaining())
		}
		k.Refund(k.Peek(1))
		k.Refund(k.Peek(0))
		k.Refund(k.Take(0))
		k.Refund(k.Take(6))
		k.Refund(k.Take(-1))
		k.Refund(Decision{})
		assert.Equal(t, before, k.Peek(0).Remaining())
		if name != "Pacer" { // another has a slot, so this one has passed
			first, second := k.Take(1), k.Take(1)
			k.Refund(first)
			k.Refund(second)
			assert.Equal(t, before, k.Peek(0).Remaining(), "in any order")
		}
	})
}

func TestKinds_ShowWhatTheyDid(t *testing.T) {
	forKinds(t, func(t *testing.T, name string, build func(Rate, ...Option) kind) {
		k := build(Rate{5, time.Hour}, WithMaxWait(0))
		require.True(t, k.Allow())
		k.Refund(k.Take(1))
		require.False(t, k.AllowN(-1))
		for k.Allow() {
		}
		k.Wait(t.Context())
		totals, refused := TotalsSnapshot{}, RefusedSnapshot{}
		text, err := json.Marshal(k.View())
		require.NoError(t, err)
		var view struct {
			Name            string
			Totals, Refused json.RawMessage
		}
		require.NoError(t, json.Unmarshal(text, &view))
		require.NoError(t, json.Unmarshal(view.Totals, &totals))
		require.NoError(t, json.Unmarshal(view.Refused, &refused))
		assert.Equal(t, "test", view.Name)
		assert.EqualValues(t, 1, totals.Refunded)
		assert.EqualValues(t, 1, refused.Invalid)
		assert.EqualValues(t, 1, refused.MaxWait)
		assert.EqualValues(t, 1, refused.Limited)

		samples := map[string]float64{}
		policy := k.Peek(0).Policy()
		k.Collect(func(s metrics.Sample) bool {
			require.NoError(t, s.Desc.Validate())
			require.Len(t, s.Labels, len(s.Desc.Labels))
			assert.Equal(t, "test", s.Labels[0])
			if len(s.Labels) > 1 {
				assert.Equal(t, policy, s.Labels[1])
			}
			key := s.Desc.Name
			if len(s.Labels) > 2 {
				key += " " + s.Labels[2]
			}
			samples[key] = s.Value
			return true
		})
		assert.EqualValues(t, totals.Admitted, samples["ratelimit_admitted"])
		assert.EqualValues(t, totals.Tokens, samples["ratelimit_tokens"])
		assert.EqualValues(t, 1, samples["rejected invalid"])
		assert.EqualValues(t, 5, samples["ratelimit_capacity"])
		n := 0
		k.Collect(func(metrics.Sample) bool { n++; return false })
		assert.Equal(t, 1, n, "it stops when it is told to")

		uncounted := build(Rate{5, time.Hour}, WithoutTotals())
		uncounted.Refund(uncounted.Take(1))
		uncounted.AllowN(99)
		_ = uncounted.WaitN(t.Context(), 99)
		_ = uncounted.Do(t.Context(), nothing)
	})
}

// Several layers of different kinds agree on all or nothing.
func TestKinds_TakeAll(t *testing.T) {
	blocked := build(t, Every(time.Hour), WithInitial(0))
	forKinds(t, func(t *testing.T, _ string, build func(Rate, ...Option) kind) {
		k, ok := build(Rate{5, time.Hour}).(layered)
		if !ok {
			return // a Pacer
		}
		other := sluice.Must(NewSlidingLog("other", Rate{4, time.Hour}))
		before := k.Peek(0).Remaining()
		for range 3 {
			assert.False(t, TakeAll(1, k.Layer(), other.Layer(), blocked.Layer()).OK())
			blocked.tier.refusing.Store(false) // so that the others are asked
		}
		assert.Equal(t, before, k.Peek(0).Remaining(), "as if they had never been asked")
		assert.EqualValues(t, 4, other.Peek(0).Remaining())
		n := 0
		for TakeAll(1, k.Layer(), other.Layer()).OK() {
			n++
		}
		assert.LessOrEqual(t, n, 4)
		assert.Positive(t, n)
		assert.EqualValues(t, 4-n, other.Peek(0).Remaining())
	})
}

func TestKinds_WaitInOrder(t *testing.T) {
	forKinds(t, func(t *testing.T, name string, build func(Rate, ...Option) kind) {
		synctest.Test(t, func(t *testing.T) {
			k, j := build(Rate{2, time.Second}), &journal{began: time.Now()}
			for k.Allow() {
			}
			for _, who := range []struct {
				name string
				n    int64
			}{{"first", 1}, {"large", 2}, {"small", 1}, {"last", 1}} {
				go func() {
					if assert.NoError(t, k.WaitN(t.Context(), who.n)) {
						j.write(who.name)
					}
				}()
				synctest.Wait()
			}
			assert.False(t, k.Allow(), "nobody passes those who wait")
			for range 100 {
				time.Sleep(100 * time.Millisecond)
				if len(j.read()) < 4 && !penalises(name) {
					assert.False(t, k.Take(1).OK(), "nobody passes those who wait")
				}
			}
			var order []string
			for _, line := range j.read() {
				order = append(order, line[:5])
			}
			assert.Equal(t, []string{"first", "large", "small", "last "}, order)
		})
	})
}

func TestKinds_WaitRefusesAtOnceWhatItCannotGet(t *testing.T) {
	forKinds(t, func(t *testing.T, name string, build func(Rate, ...Option) kind) {
		synctest.Test(t, func(t *testing.T) {
			k := build(Rate{1, 10 * time.Second}, WithMaxWait(5*time.Second))
			require.NoError(t, k.Wait(t.Context()))
			began := time.Now()
			refused := func(ctx context.Context, reason string) {
				t.Helper()
				err := k.Wait(ctx)
				var limited *LimitError
				require.ErrorAs(t, err, &limited)
				assert.Equal(t, reason, limited.Reason())
				assert.Equal(t, reason == ReasonDeadline, errors.Is(err, context.DeadlineExceeded))
				assert.Equal(t, began, time.Now(), "at once")
				assert.False(t, k.Peek(1).OK())
			}
			refused(t.Context(), ReasonMaxWait)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			refused(ctx, ReasonDeadline)
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			assert.Equal(t, context.Canceled, k.Wait(gone))
			time.Sleep(30 * time.Second)
			began = time.Now()
			require.NoError(t, k.Wait(t.Context()))
			assert.Equal(t, began, time.Now())
		})
	})
}

func TestKinds_DoWaitsIfItMay(t *testing.T) {
	forKinds(t, func(t *testing.T, name string, build func(Rate, ...Option) kind) {
		synctest.Test(t, func(t *testing.T) {
			k := build(Rate{1, time.Second}, WithMaxWait(10*time.Second))
			for range 4 {
				require.NoError(t, k.Do(t.Context(), nothing))
			}
			time.Sleep(time.Minute)
			require.NoError(t, k.Do(t.Context(), nothing))
			began := time.Now()
			require.NoError(t, k.Do(t.Context(), nothing))
			assert.Greater(t, time.Since(began), time.Second-1, "it waited")
			time.Sleep(time.Minute)
			require.NoError(t, k.Do(t.Context(), nothing))
			assert.ErrorIs(t, k.Do(t.Context(), func(ctx context.Context) error { return refuses{}.Do(ctx, nothing) }), errDown)
			began = time.Now()
			require.NoError(t, k.Do(t.Context(), nothing))
			assert.Less(t, time.Since(began), 2*time.Second, "what had been waited for was given back")
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			assert.Equal(t, context.Canceled, k.Do(ctx, nothing))
		})
	})
}

// Many come and go at random; none hangs, and the line is empty in the end.
func TestKinds_WaitersComeAndGo(t *testing.T) {
	forKinds(t, func(t *testing.T, name string, build func(Rate, ...Option) kind) {
		synctest.Test(t, func(t *testing.T) {
			const callers = 300
			k := build(Rate{10, time.Second}, WithMaxWait(time.Hour))
			began := time.Now()
			var mu sync.Mutex
			got, gone := 0, 0
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if i%3 == 1 {
						time.AfterFunc(time.Duration(10+17*i)*time.Millisecond, cancel)
					}
					time.Sleep(time.Duration(i%7) * time.Millisecond)
					err := k.Wait(ctx)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						got++
						return
					}
					assert.Equal(t, context.Canceled, err)
					gone++
				})
			}
			wg.Wait()
			assert.Equal(t, callers, got+gone)
			assert.GreaterOrEqual(t, got, 2*callers/3)
			assert.LessOrEqual(t, float64(got), 20+10*time.Since(began).Seconds())
			time.Sleep(time.Hour)
			assert.True(t, k.Allow())
			switch k := k.(type) {
			case *SlidingWindow:
				assert.Zero(t, k.line.ahead.Load()+k.line.waiting.Load())
			case *SlidingLog:
				assert.Zero(t, k.line.ahead.Load()+k.line.waiting.Load())
			case *WarmUp:
				assert.Zero(t, k.line.ahead.Load()+k.line.waiting.Load())
			case *Pacer:
				assert.Zero(t, k.waiting.Load())
			}
		})
	})
}

func TestKinds_AllocateNothing(t *testing.T) {
	ctx := t.Context()
	forKinds(t, func(t *testing.T, name string, build func(Rate, ...Option) kind) {
		many := Rate{1000, time.Microsecond}
		if name == "WarmUp" {
			many = Rate{1_000_000, time.Second}
		}
		full, empty := build(many, WithMaxWait(0)), build(Rate{1, time.Hour}, WithMaxWait(0))
		for empty.Allow() {
		}
		for what, k := range map[string]kind{"admits": full, "refuses": empty, "blocked": build(Blocked()), "unlimited": build(Unlimited())} {
			for verb, do := range map[string]func(){
				"Allow":  func() { k.Allow() },
				"AllowN": func() { k.AllowN(3); k.AllowN(-1) },
				"Take":   func() { d := k.Take(1); _, _, _, _ = d.Remaining(), d.RetryAfter(), d.ResetAfter(), d.Never() },
				"Peek":   func() { d := k.Peek(2); _, _, _, _ = d.Limit(), d.Policy(), d.Resource(), d.Capacity() },
				"Refund": func() { k.Refund(k.Take(1)) },
				"Do":     func() { _ = k.Do(ctx, nothing) },
				"Do, given back": func() {
					_ = k.Do(ctx, func(context.Context) error { return sluice.ErrRejected })
				},
				"Call": func() { _, _ = sluice.Call(ctx, k, value) },
			} {
				if what == "refuses" && penalises(name) && (verb[0] == 'D' || verb == "Call") {
					continue
				}
				assert.Zero(t, testing.AllocsPerRun(200, do), "%s, %s", what, verb)
			}
			if l, ok := k.(layered); ok {
				assert.Zero(t, testing.AllocsPerRun(200, func() { TakeAll(1, l.Layer(), full.(layered).Layer()) }), what)
			}
		}
	})
	p := sluice.Must(NewPacer("test", Every(time.Hour), WithMaxWait(time.Minute)))
	p.Allow()
	assert.Zero(t, testing.AllocsPerRun(200, func() { _ = p.Do(ctx, nothing) }), "a queue that is full")
}
