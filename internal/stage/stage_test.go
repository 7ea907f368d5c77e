package stage

import (
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func TestMarks(t *testing.T) {
	for _, mark := range []struct {
		name  string
		with  func(context.Context) context.Context
		is    func(context.Context) bool
		other func(context.Context) bool
	}{
		{"probe", WithProbe, IsProbe, Bypassed},
		{"bypass", WithBypass, Bypassed, IsProbe},
	} {
		t.Run(mark.name, func(t *testing.T) {
			plain := t.Context()
			marked := mark.with(plain)
			child, cancel := context.WithCancel(marked)
			defer cancel()

			assert.False(t, mark.is(plain), "marking a context leaves its parent alone")
			assert.True(t, mark.is(marked))
			assert.True(t, mark.is(child), "the mark is inherited")
			assert.True(t, mark.is(mark.with(child)), "marking twice is marking once")
			assert.True(t, mark.is(context.WithoutCancel(child)), "it is about the call, not about who waits for it")
			assert.False(t, mark.other(child), "the two marks are two")
		})
	}
}

func TestEndOf(t *testing.T) {
	assert.Equal(t, context.Canceled, EndOf(t.Context()), "one without an error that is said to be done")
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	assert.Equal(t, context.DeadlineExceeded, EndOf(ctx))
}

// A word more and the compiler passes tickets through memory.
func TestTicket_FitsInFourWords(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Ticket{}), uintptr(32))
}

func TestTicket_HoldsAPointerWithoutAllocating(t *testing.T) {
	owner := new(int)
	sum := int64(0)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		ticket := Ticket{Ref: owner, At: 1, Mark: 1}
		if ticket.Ref.(*int) == owner {
			sum += ticket.At
		}
	}))
}
