// Package sluice is the vocabulary that a family of resilience packages shares:
// what a finished call says about a dependency (Outcome), what a refusal is
// (Rejection), how important a call is (Priority), and how guards are put around
// a call (Guard, Chain, Call).
//
// A sluice is a gate that decides how much water may pass, and where to. The
// packages beside this one decide which calls may go to a dependency, how many,
// how fast and for how long: breaker is the circuit breaker, httpguard puts it
// around net/http, slidingwindow counts, metrics reads everything out.
//
// # Composing
//
// Every guard has Do, and most callers need nothing else for one guard. Call adds
// a typed result, CallOr a fallback, and Chain puts guards inside one another:
//
//	guard := sluice.Chain(limiter, bulkhead, breaker) // first is outermost
//	user, err := sluice.Call(ctx, guard, func(ctx context.Context) (User, error) {
//		return client.User(ctx, id)
//	})
//
// The order that works: retry, rate limit, bulkhead, breaker, timeout, call. A
// breaker belongs inside whatever may still refuse, so that no probe is spent on
// a call that is never made; a timeout belongs inside the breaker, so that its
// end counts as the dependency's failure.
//
// # What a result means
//
// Classify is the rule that every package follows: who ended the call decides.
// A call that the caller abandoned says nothing about the dependency; a call that
// ran into a time limit of ours does. Mark and Ignore let the code that knows
// better say so.
//
// # Concurrency
//
// Everything here is safe for concurrent use and keeps no state between calls.
package sluice
