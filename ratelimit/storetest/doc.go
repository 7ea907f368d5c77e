// Package storetest examines whether a ratelimit.Store keeps what its users rely on,
// each rule by itself:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Subject {
//			server := startServer(t)
//			return storetest.Subject{
//				Store: mystore.New(server.Addr()),
//				Lose:  server.FlushAll,
//				Die:   server.Stop, Revive: server.Start,
//			}
//		})
//	}
//
// Each rule is a subtest, whose failure says what the rule is and what was seen. The
// more a Subject can do to its store, the more rules are examined; the others are
// skipped. The checks use names of their own that no other run uses, so the store may
// be one that others work with, unless Lose, Die or Step would disturb them.
//
// # Time
//
// A store has its own clock, so checks let time pass and ask what has become of it:
// about twenty seconds in all, half of that with -short. They measure how long that
// took, and no machine is too slow for them. Subject.Pass makes it quicker for a store
// whose clock can be moved, and RunInBubble for one that is in the memory of this
// process.
//
// # Without testing
//
// Checks returns the single checks, to be run and reported in another way than by
// package testing.
package storetest
