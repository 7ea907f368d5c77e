package slidingwindow

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRecordingAndReadingDoNotAllocate(t *testing.T) {
	a, err := New[atomic.Int64](time.Hour, 10)
	require.NoError(t, err)
	c, err := NewCounts(time.Hour, 10)
	require.NoError(t, err)
	r, err := NewRing(100)
	require.NoError(t, err)
	h := newHistogram(t, 8, time.Second)
	h.RecordCensored(time.Second)
	other := newHistogram(t, 8, time.Minute)
	var sink int64

	for name, do := range map[string]func(){
		"LeapArray.Current": func() { a.Current().Add(1) },
		"LeapArray.All": func() {
			for start, n := range a.All() {
				sink += start + n.Load()
			}
		},
		"LeapArray.AllAt": func() {
			for start, n := range a.AllAt(5) {
				sink += start + n.Load()
			}
		},
		"Counts.Record":            func() { c.Record(Failed) },
		"Counts.Sum":               func() { sink += c.Sum().Total },
		"Ring.Record":              func() { r.Record(Failed); r.Record(0) },
		"Ring.Sum":                 func() { sink += r.Sum().Total },
		"Histogram.Record":         func() { h.Record(time.Second) },
		"Histogram.RecordCensored": func() { h.RecordCensored(time.Second) },
		"Histogram.Quantile":       func() { sink += int64(h.Quantile(0.99)) },
		"Histogram.Merge":          func() { _ = h.Merge(other) },
		"Histogram.All": func() {
			for b := range h.All() {
				sink += b.Finished
			}
		},
	} {
		assert.Zero(t, testing.AllocsPerRun(100, do), name)
	}
}

// A roll costs one bucket, whatever the traffic within it.
func TestABucketIsAllocatedOncePerWidth(t *testing.T) {
	const width = 100
	a, err := New[atomic.Int64](3*width, 3)
	require.NoError(t, err)
	now := int64(0)
	assert.EqualValues(t, 1, testing.AllocsPerRun(1000, func() {
		now += width
		for at := now; at < now+width; at += 10 {
			a.At(at).Add(1)
		}
	}))
}
