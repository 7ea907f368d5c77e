package slidingwindow

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// maxBuckets bounds the memory of one window.
const maxBuckets = 10_000

// Now is the time that the …At methods of this package take: nanoseconds on a
// monotonic clock, at least 1.
func Now() int64 { return clock.Now() }

// checkShape returns all that is wrong with a window of span in buckets.
func checkShape(span time.Duration, buckets int) error {
	var errs []error
	if span <= 0 {
		errs = append(errs, fmt.Errorf("slidingwindow: span %v is not positive", span))
	}
	if buckets < 1 || buckets > maxBuckets {
		errs = append(errs, fmt.Errorf("slidingwindow: buckets %d is not in [1, %d]", buckets, maxBuckets))
	} else if span > 0 && int64(span)%int64(buckets) != 0 {
		errs = append(errs, fmt.Errorf("slidingwindow: span %v is not a multiple of %d buckets", span, buckets))
	}
	return errors.Join(errs...)
}
