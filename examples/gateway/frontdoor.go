package main

import (
	"net/http"
	"sync/atomic"
	"time"
)

// A frontDoor has so many slots for the requests of all services together, as a
// server with a fixed pool of threads has. A request that finds none free waits in
// line, and gets a 503 when it has waited for as long as patience.
type frontDoor struct {
	slots chan struct{} // holds one element for each slot taken; senders wait in order
	most  atomic.Int64  // most slots taken at once; enter raises it
}

func newFrontDoor(slots int) *frontDoor {
	return &frontDoor{slots: make(chan struct{}, slots)}
}

// entrance returns the way to next through the front door.
func (d *frontDoor) entrance(next http.Handler) *entrance {
	return &entrance{door: d, next: next}
}

// enter takes a slot, and reports whether it has got one.
func (d *frontDoor) enter(r *http.Request) bool {
	select {
	case d.slots <- struct{}{}:
	default:
		full := time.NewTimer(patience)
		defer full.Stop()
		select {
		case d.slots <- struct{}{}:
		case <-full.C:
			return false
		case <-r.Context().Done():
			return false
		}
	}
	for taken := int64(len(d.slots)); ; {
		most := d.most.Load()
		if taken <= most || d.most.CompareAndSwap(most, taken) {
			return true
		}
	}
}

func (d *frontDoor) leave() { <-d.slots }

// An entrance is one service's way through the front door.
type entrance struct {
	door  *frontDoor
	next  http.Handler
	taken atomic.Int64 // slots that this service holds; ServeHTTP takes and gives back
}

func (e *entrance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !e.door.enter(r) {
		http.Error(w, "the house is full", http.StatusServiceUnavailable)
		return
	}
	defer e.door.leave()
	e.taken.Add(1)
	defer e.taken.Add(-1)
	e.next.ServeHTTP(w, r)
}
