package adaptive

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

// The counts of /sched/latencies grow for ever; what counts is what came since.
func TestLoad_DelaySinceTheLastRead(t *testing.T) {
	edges := []float64{math.Inf(-1), 0, 0.001, 0.010, 0.100, math.Inf(1)}
	var q runQueue
	assert.False(t, q.grown([]uint64{0, 100, 0, 0, 900}, edges).known, "the first time")
	assert.False(t, q.grown([]uint64{0, 119, 0, 0, 900}, edges).known, "too few")
	assert.Equal(t, known(0), q.grown([]uint64{0, 218, 0, 0, 901}, edges), "one in a hundred may wait")
	assert.Equal(t, known(0.1), q.grown([]uint64{0, 315, 0, 0, 904}, edges), "more of them may not")
	assert.Equal(t, known(0.001), q.grown([]uint64{0, 315, 50, 0, 904}, edges))
	assert.Equal(t, known(0), q.grown([]uint64{50, 315, 50, 0, 904}, edges), "never below 0")
}

// A garbage collection is over by the next read; a queue that is there to stay is not.
func TestLoad_DelayThatLasts(t *testing.T) {
	var q runQueue
	assert.False(t, q.lasting(known(0.1)).known, "the first time")
	assert.Equal(t, known(0.001), q.lasting(known(0.001)))
	assert.Equal(t, known(0.001), q.lasting(known(0.1)), "once")
	assert.Equal(t, known(0.1), q.lasting(known(0.2)), "twice")
	assert.False(t, q.lasting(reading{}).known)
	assert.False(t, q.lasting(known(0.1)).known)
}

func TestLoad_RunQueueOfThisProcess(t *testing.T) {
	q := newRunQueue()
	_, load := q.read()
	assert.True(t, load.known)
	assert.Positive(t, load.value, "this goroutine runs")
	assert.Zero(t, testing.AllocsPerRun(20, func() { q.read() }))
}
