package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// visit sends a request through e, and returns its status and how long it took.
func visit(ctx context.Context, e *entrance) (int, time.Duration) {
	start := time.Now()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	return w.Code, time.Since(start)
}

// stay is a handler that takes d.
func stay(d time.Duration) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(d) })
}

func TestFrontDoor_FullHouseAnswers503AfterItsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newFrontDoor(3)
		long, short := door.entrance(stay(10*time.Second)), door.entrance(stay(0))
		var guests sync.WaitGroup
		for range 3 {
			guests.Go(func() { visit(t.Context(), long) })
		}
		synctest.Wait()
		assert.EqualValues(t, 3, long.taken.Load())

		code, took := visit(t.Context(), short)
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Equal(t, patience, took)
		assert.Zero(t, short.taken.Load(), "who is turned away holds no slot")

		guests.Wait()
		code, took = visit(t.Context(), short)
		assert.Equal(t, http.StatusOK, code)
		assert.Zero(t, took, "an empty house lets in at once")
		assert.EqualValues(t, 3, door.most.Load())
		assert.Empty(t, door.slots)
	})
}

func TestFrontDoor_WaitersGetFreeSlotsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newFrontDoor(1)
		e := door.entrance(stay(400 * time.Millisecond))
		waited := make([]time.Duration, 4)
		codes := make([]int, 4)
		var guests sync.WaitGroup
		for i := range 4 {
			guests.Go(func() { codes[i], waited[i] = visit(t.Context(), e) })
			synctest.Wait()
		}
		guests.Wait()
		assert.Equal(t, []int{200, 200, 200, 503}, codes)
		assert.Equal(t, []time.Duration{400 * time.Millisecond, 800 * time.Millisecond, 1200 * time.Millisecond, patience}, waited)
	})
}

func TestFrontDoor_WhoLeavesTheLineTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newFrontDoor(1)
		e := door.entrance(stay(800 * time.Millisecond))
		var guests sync.WaitGroup
		guests.Go(func() { visit(t.Context(), e) })
		synctest.Wait()
		impatient, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer leave()
		_, took := visit(impatient, e)
		assert.Equal(t, 100*time.Millisecond, took)
		code, took := visit(t.Context(), e)
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, 1500*time.Millisecond, took, "700 ms in line, then 800 ms inside")
		guests.Wait()
		assert.Empty(t, door.slots)
	})
}

func TestFrontDoor_PanicGivesTheSlotBack(t *testing.T) {
	door := newFrontDoor(1)
	e := door.entrance(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { visit(t.Context(), e) })
	assert.Empty(t, door.slots)
	assert.Zero(t, e.taken.Load())
}
