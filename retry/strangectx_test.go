package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// hollow is a ctx whose Done is closed although its Err is nil.
type hollow struct{ context.Context }

func (hollow) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// Such a ctx once cut every wait short, that which the dependency had asked for too. Now
// it ends the call, and what was charged for the attempt is given back.
func TestWait_AContextThatIsDoneWithoutAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := build(t, WithBackoff(time.Second, time.Second)), answering(errDown)
		err := p.Do(hollow{t.Context()}, d.call)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, errDown)
		assert.Len(t, d.calls, 1)
		assert.EqualValues(t, 1, p.Snapshot().GivenUp.Ended)
		assert.EqualValues(t, 1, p.Budget().Snapshot().Returned)
	})
}

// manyErrors cannot be compared.
type manyErrors []error

func (manyErrors) Error() string { return "many" }

// endsWith is a ctx that has ended with an error of its own.
type endsWith struct {
	context.Context
	err error
}

func (c endsWith) Err() error { return c.err }

// The error of a ctx is foreign: comparing two of a type that cannot be compared panics.
func TestError_OfAContextWhoseErrorCannotBeCompared(t *testing.T) {
	p := build(t, WithBackoff(0, 0))
	ctx := &endsWith{Context: t.Context()}
	attempt := 0
	err := p.Do(ctx, func(context.Context) error {
		if attempt++; attempt > 1 {
			ctx.err = manyErrors{errDown}
		}
		return errDown
	})
	assert.EqualError(t, err, `retry "payments": gave up after 2 attempts (many): connection refused`)
	assert.False(t, errors.Is(err, manyErrors{}))
}
