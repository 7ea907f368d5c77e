// Package retry makes calls again: after they have failed (Policy), or while they
// take long (Hedge), and no more often than the dependency can bear (Budget).
//
//	budget, err := retry.NewBudget("payments")
//	…
//	policy, err := retry.New("payments", retry.WithAttempts(3), retry.WithBudget(budget))
//	…
//	err = policy.Do(ctx, func(ctx context.Context) error { return pay(ctx, order) })
//
// # Which one
//
//	Policy   makes a call again that failed: a sluice.Guard, the outermost of a chain
//	Hedge    makes a call a second time while the first is still out: against a slow tail
//	Budget   bounds what both add to the load; share one for each dependency
//
// Only calls that may be made twice should be: reads, and writes that carry a key by
// which they are known again.
//
// # One call
//
//	attempt 1 ──fails──► worth another? ──► time, attempts, budget left? ──► wait ──► attempt 2 …
//	                         │ no                   │ no
//	                         ▼                      ▼
//	                  its error as it is         *Error: why, how often, and the last error
//
// What is worth another attempt is said by sluice.Classify, unless a classifier says
// otherwise: failures of the dependency, and answers that it wants less. A local
// refusal is not, because to ask again at once is useless; nor is a call whose caller
// has gone away.
//
// The wait before attempt n+1 is drawn evenly from 0 to Backoff · BackoffFactorⁿ⁻¹,
// or to BackoffMax if that is less. If the dependency asks for a wait
// (sluice.RetryAfter), that comes before it, in full; and if it asks for more than
// MaxRetryAfter, there is no further attempt. Nor is there one if the wait would not
// end before the deadline: then the call ends at once, while its caller still has
// time to do something else.
//
// # The budget
//
// Three attempts give a dependency that is down three times its load, and when it
// comes back it finds a backlog that it cannot work off: it stays down although the
// cause is gone. With calls at a rate λ, repetitions for a share r of them, and a
// capacity of C, a backlog of B is gone after B / (C − λ(1+r)). At r = C/λ − 1 that
// is never. So there is always a budget, unless WithBudget(nil) says that there is
// none: by default a tenth of the calls and one a second. A budget is necessary and
// not sufficient: a dependency should also bound what it has in flight.
//
// # Nesting
//
// Three attempts inside three are three, and not nine. An error that a policy further
// in has given up is not retried further out, for whoever is closest knows best; and
// where that error does not come through, the further attempts of the outer policy
// make each call once. A hedge is such a further attempt too. AttemptOf tells which
// one it is.
//
// # Concurrency properties
//
// A call that succeeds at once takes no lock and allocates nothing. Asking the budget
// for a repetition takes a mutex for some tens of nanoseconds, and no foreign code
// runs under it. Policy never runs a call twice at once, and Do returns when the last
// attempt has; so it is a sluice.Guard. Hedge can keep neither promise, and is none.
// There are no goroutines but those of hedged attempts, which end when they are told
// to.
//
// Time is monotonic: setting the wall clock changes nothing. In a testing/synctest
// bubble it is the bubble's, so make a budget within; one that has counted calls
// outside finds itself in the past.
//
// # Choosing numbers
//
//   - attempts: 3. The second helps against what happens now and then, the third
//     against a restart; a fourth mostly adds load.
//   - backoff: first about as long as a call takes; at most a few seconds.
//   - ratio: at most half of C/λ − 1, the share by which the dependency could serve
//     more than it has to. 0.1 suits one that is loaded to 80 %.
//   - hedge delay: the 95th percentile, which costs at most 5 % more calls. A fixed
//     delay is at least twice the median.
//   - one budget for each dependency and not for each method; not one for all, or the
//     one that is down uses up what the others need.
//   - policies that stand inside one another should not share a budget: it would count
//     their calls twice.
package retry
