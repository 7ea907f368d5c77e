package httpguard

import (
	"errors"
	"iter"
	"net/http"

	"github.com/sluicego/sluice"
)

// Fail says that the request of w failed with err, whatever status the client gets:
// for a handler that knows better, such as one that answers from a cache because a
// database is down. Who ended the request decides what err means, as always: when the
// client has left, or a guard further in has refused, it is no failure.
//
// It tells every Gate around the handler, through any ResponseWriter that has Unwrap.
// The last of several words counts, and one that comes after the verdict (see the
// package comment) does not. A nil err says nothing. Without a Gate that wants to know,
// Fail does nothing.
func Fail(w http.ResponseWriter, err error) {
	if err == nil {
		return
	}
	for v := range visits(w) {
		said := err
		v.said.Store(&said)
	}
}

// Ignore says that the request of w proves nothing about its route: for a body that
// the client has broken off, or a 503 that is meant. It leaves no trace in a breaker,
// and a probe's place is free again. It reaches as far as Fail does.
func Ignore(w http.ResponseWriter) { Fail(w, errIgnored) }

var errIgnored = sluice.Ignore(errors.New("httpguard: ignored by the handler"))

// visits returns those that w belongs to, the innermost first.
func visits(w http.ResponseWriter) iter.Seq[*visit] {
	return func(yield func(*visit) bool) {
		for w != nil {
			if ours, ok := w.(interface{ ofVisit() *visit }); ok && !yield(ours.ofVisit()) {
				return
			}
			around, ok := w.(interface{ Unwrap() http.ResponseWriter })
			if !ok {
				return
			}
			w = around.Unwrap()
		}
	}
}
