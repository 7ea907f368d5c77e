package adaptive

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluicego/sluice/internal/clock"
)

func TestLoad_Host(t *testing.T) {
	m := newMachine(t, 1, map[string]string{"proc/loadavg": "13.64 13.83 13.16 20/210 32388"})
	assert.Equal(t, known(13.64), hostLoad(m.root))
	for _, text := range []string{"", "many 1 1", "-1 0 0", "NaN 0 0", "+Inf 0 0"} {
		m.write("proc/loadavg", text)
		assert.False(t, hostLoad(m.root).known, text)
	}
	assert.False(t, hostLoad(t.TempDir()).known, "no file")
}

func TestLoad_Smoothed(t *testing.T) {
	s := smoothed{tau: time.Second}
	assert.False(t, s.read().known, "unknown is not 0")
	s.add(t0, 1)
	s.add(t0, 1)
	assert.False(t, s.read().known, "not before the third")
	s.add(t0, 1)
	assert.Equal(t, known(1), s.read())
	s.add(t0+int64(time.Second), 0)
	assert.InDelta(t, math.Exp(-1), s.read().value, 1e-9, "after tau, 1/e of it is left")

	// https://github.com/zeromicro/go-zero/issues/4265: an average in integers stays
	// below what it should reach.
	for i := range 100 {
		s.add(t0+int64(time.Duration(2+i)*time.Second), 1)
	}
	assert.InDelta(t, 1, s.read().value, 1e-9, "a CPU at 100 %% reads as 100 %%")
}

// A queue is read from counts that grow for ever: what counts is what came since.
func TestLoad_DelayOfWhatCameSince(t *testing.T) {
	edges := []float64{math.Inf(-1), 0, 0.001, 0.010, 0.100, math.Inf(1)}
	q := runQueue{before: []uint64{0, 119, 0, 0, 900}}
	for _, c := range []struct {
		counts []uint64
		delay  float64
		n      uint64
	}{
		{[]uint64{0, 218, 0, 0, 901}, 0, 100},     // one in a hundred may wait
		{[]uint64{0, 217, 0, 0, 902}, 0.1, 100},   // more of them may not
		{[]uint64{0, 119, 50, 0, 900}, 0.001, 50}, //
		{[]uint64{150, 119, 0, 0, 900}, 0, 150},   // never below 0
		{[]uint64{0, 119, 0, 0, 901}, 0.1, 1},     // the caller knows how few they are
		{[]uint64{0, 119, 0, 0, 900}, 0, 0},       //
	} {
		delay, n := q.grown(c.counts, edges)
		assert.Equal(t, c.delay, delay, c.counts)
		assert.Equal(t, c.n, n, c.counts)
	}
}

// A garbage collection is over by the next time; a queue that is there to stay is not.
func TestLoad_DelayThatLasts(t *testing.T) {
	edges := []float64{0, 0.001, 0.1, math.Inf(1)}
	var q runQueue
	now, counts := int64(time.Hour), []uint64{7, 0, 0}
	come := func(after time.Duration, bucket, n int) reading {
		now += int64(after)
		counts[bucket] += uint64(n)
		q.look(now, counts, edges)
		return q.delay
	}
	const tick = 100 * time.Millisecond
	assert.False(t, come(tick, 2, 20).known, "nobody knows what came before")
	assert.False(t, come(tick, 2, 20).known, "the first time")
	assert.Equal(t, known(0), come(tick, 0, 20))
	assert.Equal(t, known(0), come(tick, 2, 20), "once")
	assert.Equal(t, known(0.1), come(tick, 2, 20), "twice")

	// A server whose calls keep a core busy has few goroutines, most of all in overload;
	// a look at 20 of each 100 ms alone would be blind all the time.
	assert.Equal(t, known(0.1), come(tick, 1, 7), "too few: what was found stands")
	assert.Equal(t, known(0.1), come(tick, 1, 7))
	assert.Equal(t, known(0.001), come(tick, 1, 7), "together they are enough")
	for range 9 {
		assert.True(t, come(tick, 1, 1).known)
	}
	assert.False(t, come(tick, 1, 1).known, "but it does not stand for longer than a second")
	assert.False(t, come(tick, 1, 20).known, "and then two are needed again")
	assert.True(t, come(tick, 1, 20).known)
}

func TestLoad_RunQueueOfThisProcess(t *testing.T) {
	q := newRunQueue()
	_, load := q.read(clock.Now())
	assert.True(t, load.known)
	assert.Positive(t, load.value, "this goroutine runs")
	assert.Zero(t, testing.AllocsPerRun(20, func() { q.read(clock.Now()) }))
}
