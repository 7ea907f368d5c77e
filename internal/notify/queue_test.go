package notify

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pushed returns a queue in which first … last wait.
func pushed(first, last int) *Queue[int] {
	q := new(Queue[int])
	for v := first; v <= last; v++ {
		q.Push(v)
	}
	return q
}

// ended runs f in a goroutine and reports whether it ended before f returned.
func ended(f func()) (early bool) {
	early = true
	var done sync.WaitGroup
	done.Go(func() {
		f()
		early = false
	})
	done.Wait()
	return early
}

func TestDeliverKeepsOrder(t *testing.T) {
	q := pushed(1, 5)
	var got []int
	q.Deliver(func(v int) { got = append(got, v) }, nil)
	assert.Equal(t, []int{1, 2, 3, 4, 5}, got)

	q.Deliver(func(int) { assert.Fail(t, "an event arrived twice") }, nil)
}

func TestDeliverFromWithinTheListener(t *testing.T) {
	q := pushed(1, 2)
	var got []int
	inside := 0
	var f func(int)
	f = func(v int) {
		inside++
		assert.Equal(t, 1, inside, "one at a time")
		got = append(got, v)
		if v < 10 {
			q.Push(v + 10)
			q.Deliver(f, nil)
			assert.Equal(t, v, got[len(got)-1], "an inner Deliver leaves the event to the outer one")
		}
		inside--
	}
	q.Deliver(f, nil)
	assert.Equal(t, []int{1, 2, 11, 12}, got)
}

// A listener that asks the owner for its state must not deadlock, though the
// owner pushes with its lock held. See https://github.com/sony/gobreaker/blob/master/v2/gobreaker.go,
// where OnStateChange runs under the breaker's mutex.
func TestListenerMayCallTheOwner(t *testing.T) {
	var owner struct {
		sync.Mutex
		events Queue[string]
		state  string
	}
	owner.Lock()
	owner.state = "open"
	owner.events.Push("opened")
	owner.Unlock()

	seen := ""
	owner.events.Deliver(func(string) {
		owner.Lock()
		defer owner.Unlock()
		seen = owner.state
	}, nil)
	assert.Equal(t, "open", seen)
}

func TestPanicEndsOnlyItsDelivery(t *testing.T) {
	var got []int
	odd := func(v int) {
		got = append(got, v)
		if v%2 == 1 {
			panic(v)
		}
	}
	for name, onPanic := range map[string]func(any){
		"nobody is told":         nil,
		"who is told panics too": func(any) { panic("again") },
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			q := pushed(1, 5)
			q.Deliver(odd, onPanic)
			assert.Equal(t, []int{1, 2, 3, 4, 5}, got)
			assert.EqualValues(t, 3, q.Panics())
			q.Push(6)
			q.Deliver(odd, onPanic)
			assert.Equal(t, 6, got[len(got)-1], "the queue is not left busy")
		})
	}
}

func TestOnPanicSeesValueAndStack(t *testing.T) {
	q := pushed(7, 7)
	var told []any
	var stack string
	q.Deliver(panicAtTheListener, func(recovered any) {
		told = append(told, recovered)
		stack = string(debug.Stack())
	})
	assert.Equal(t, []any{7}, told)
	assert.Contains(t, stack, "panicAtTheListener")
}

func panicAtTheListener(v int) { panic(v) }

func TestGoexitEndsOnlyItsDelivery(t *testing.T) {
	for name, tc := range map[string]struct {
		f       func(int)
		onPanic func(any)
		panics  uint64
	}{
		"once": {f: func(v int) {
			if v == 2 {
				runtime.Goexit()
			}
		}},
		"each time": {f: func(int) { runtime.Goexit() }},
		"then a panic": {panics: 1, f: func(v int) {
			switch v {
			case 2:
				runtime.Goexit()
			case 3:
				panic(v)
			}
		}},
		"where the panic is told": {panics: 1, f: func(v int) {
			if v == 2 {
				panic(v)
			}
		}, onPanic: func(any) { runtime.Goexit() }},
	} {
		t.Run(name, func(t *testing.T) {
			q := pushed(1, 5)
			var got []int
			assert.True(t, ended(func() {
				q.Deliver(func(v int) {
					got = append(got, v)
					tc.f(v)
				}, tc.onPanic)
			}), "Goexit still ends the goroutine")
			assert.Equal(t, []int{1, 2, 3, 4, 5}, got)
			assert.Equal(t, tc.panics, q.Panics())

			q.Push(6)
			q.Deliver(func(v int) { got = append(got, v) }, nil)
			assert.Equal(t, 6, got[len(got)-1], "the queue is not left busy")
		})
	}
}

// A full queue behind a listener that ends its goroutine each time is the
// deepest that the stack can get without new events.
func TestGoexitAtEveryEventOfAFullQueue(t *testing.T) {
	q := pushed(1, Limit)
	got := 0
	assert.True(t, ended(func() {
		q.Deliver(func(int) {
			got++
			runtime.Goexit()
		}, nil)
	}))
	assert.Equal(t, Limit, got)
}

func TestOverflowDropsTheOldest(t *testing.T) {
	const more = 300
	q := pushed(1, Limit+more)
	assert.EqualValues(t, more, q.Dropped())

	want := more + 1
	q.Deliver(func(v int) {
		require.Equal(t, want, v)
		want++
	}, nil)
	assert.Equal(t, Limit+more+1, want, "the newest is the last to arrive")
}

func TestSlowListenerHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := pushed(0, 0)
		var got []int
		slow := func(v int) {
			time.Sleep(time.Minute)
			got = append(got, v)
		}
		began := time.Now()
		var delivery sync.WaitGroup
		delivery.Go(func() { q.Deliver(slow, nil) })
		synctest.Wait() // it sleeps in the listener now

		var others sync.WaitGroup
		for v := 1; v <= 3; v++ {
			others.Go(func() {
				time.Sleep(time.Duration(v) * time.Second)
				pushedAt := time.Now()
				q.Push(v)
				q.Deliver(slow, nil)
				assert.Equal(t, pushedAt, time.Now(), "neither call waits for the listener")
			})
		}
		others.Wait()
		assert.Equal(t, 3*time.Second, time.Since(began))
		delivery.Wait()
		assert.Equal(t, 4*time.Minute, time.Since(began))
		assert.Equal(t, []int{0, 1, 2, 3}, got)
	})
}

func TestMemory(t *testing.T) {
	t.Run("an idle queue is small", func(t *testing.T) {
		assert.LessOrEqual(t, unsafe.Sizeof(Queue[[100]string]{}), uintptr(64))
		var q Queue[int]
		assert.Zero(t, testing.AllocsPerRun(100, func() { q.Deliver(nil, nil) }))
	})
	t.Run("a burst leaves nothing behind", func(t *testing.T) {
		q := pushed(1, Limit)
		assert.Len(t, q.ring, Limit)
		left := Limit
		q.Deliver(func(int) {
			left--
			assert.LessOrEqual(t, len(q.ring), max(4*left, 1), "with %d waiting", left)
		}, nil)
		assert.Nil(t, q.ring)
	})
	t.Run("what was delivered is free to go", func(t *testing.T) {
		var q Queue[*[1 << 10]int]
		var refs []weak.Pointer[[1 << 10]int]
		for range 8 {
			v := new([1 << 10]int)
			refs = append(refs, weak.Make(v))
			q.Push(v)
		}
		n := 0
		q.Deliver(func(*[1 << 10]int) {
			if n++; n == 3 { // five still wait, in the ring of eight
				assert.Len(t, q.ring, 8)
				runtime.GC()
				assert.Nil(t, refs[0].Value())
				assert.Nil(t, refs[1].Value())
				assert.NotNil(t, refs[3].Value())
			}
		}, nil)
	})
}
