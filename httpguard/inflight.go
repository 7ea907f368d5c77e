package httpguard

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
)

// ErrFull is what the refusal of WithMaxInFlight matches with errors.Is. It matches
// sluice.ErrRejected as well.
var ErrFull = errors.New("httpguard: too many requests in flight")

// maxSlots is the largest bound.
const maxSlots = math.MaxUint32

// slots bounds how many requests are inside.
type slots struct {
	most uint32
	// word packs how many are taken (low half) with the most that ever were (high
	// half), so that both are right at every moment. Written by take and release.
	word    atomic.Uint64
	refused atomic.Uint64 // written by take
}

// take takes a slot, or reports that there is none. A nil slots has no bound.
func (s *slots) take() bool {
	if s == nil {
		return true
	}
	for {
		old := s.word.Load()
		taken, peak := uint32(old), uint32(old>>32)
		if taken >= s.most {
			s.refused.Add(1)
			return false
		}
		if s.word.CompareAndSwap(old, uint64(max(peak, taken+1))<<32|uint64(taken+1)) {
			return true
		}
	}
}

// release gives a slot back.
func (s *slots) release() {
	if s != nil {
		s.word.Add(^uint64(0)) // at least one is taken, so nothing is borrowed from the high half
	}
}

// fullError is the refusal of a full house. There is one for each Gate.
type fullError struct {
	name string
	most uint32
}

func (e *fullError) Error() string {
	return fmt.Sprintf("httpguard %q: %d requests in flight", e.name, e.most)
}

// Is makes it match ErrFull and sluice.ErrRejected.
func (e *fullError) Is(target error) bool { return target == ErrFull || target == sluice.ErrRejected }

func (e *fullError) Resource() string { return e.name }
func (e *fullError) Policy() string   { return "in_flight" }
func (e *fullError) Reason() string   { return "full" }

// RetryAfter is between one and three seconds: nobody knows when there is room, but
// those who were refused together should not come back together.
func (e *fullError) RetryAfter() time.Duration {
	return time.Second + rand.N(2*time.Second)
}
