// Package breaker is a circuit breaker: it stops calls to a dependency that is
// failing or slow, and finds out with a bounded number of probes when they may go
// on.
//
//	b, err := breaker.New("payments",
//		breaker.WithSlowCallRatio(800*time.Millisecond, 0.5),
//		breaker.WithErrorRatio(0.4),
//		breaker.WithOpenFor(15*time.Second))
//	…
//	err = b.Do(ctx, func(ctx context.Context) error { return pay(ctx, order) })
//	if errors.Is(err, breaker.ErrOpen) {
//		return fallback()
//	}
//
// # States
//
//	           a rule trips
//	┌────────┐ ───────────────────────────► ┌──────┐
//	│ Closed │                              │ Open │ ◄─┐
//	└────────┘                              └──────┘   │
//	    ▲                                       │      │ a probe fails
//	    │ the last stage     the open period is │      │ or is lost
//	    │ of probes passes   over, and a call   ▼      │
//	    │                    comes         ┌──────────┐│
//	    └───────────────────────────────── │ HalfOpen │┘
//	                                       └──────────┘
//
// What each event does in each state:
//
//	event                    Closed                  Open                     HalfOpen
//	a call asks              admitted¹               refused; after the       a probe if one is
//	                                                 deadline: to HalfOpen    free, else refused
//	success                  counted²                –                        good³
//	failure                  counted; Open if a      –                        bad: Open if beyond
//	                         rule trips                                       the tolerance
//	slow                     as failure, for slow    –                        bad, for slow rules
//	                         rules
//	throttled                counted, not as bad     –                        place back; the next
//	                                                                          probe waits
//	ignored, cancelled       no trace⁴               –                        place back
//	panic, Goexit            failure                 –                        bad
//	no end within the lease  –                       –                        bad, when next asked
//	result of an older stay  dropped, counted        dropped, counted         dropped, counted
//	Trip                     Open                    new deadline             Open
//	Reset                    Closed, empty           Closed                   Closed
//	Update                   windows of a new shape  deadline may come        from the next probe
//	                         begin empty             forward                  or stage
//	Force, Unforce           the state stays in every case
//
//	¹ in recovery, only a share is admitted
//	² and judged while a ratio is reached and only its gate is not
//	³ the next stage, or Closed, when the stage is full
//	⁴ except that a call abandoned after the slow limit is slow
//
// A permit belongs to the stay in a state that admitted it. When the breaker has
// moved on, its result is dropped: a success of before the outage closes nothing,
// and a failure that comes late opens nothing.
//
// # Rules
//
// Any of several rules trips, and the state is one: rules never fight over a probe.
// Ratio rules (slow calls, errors) need a minimum number of calls; counts (in the
// window, in a row) do not. Thresholds are reached, not exceeded: a ratio of 0.5
// trips at 50 of 100, exactly, in whole numbers. Each rule may have its own window,
// gate and open period. When several trip at once, the longest open period counts.
//
// # Recovery
//
// When the open period is over, the next call is a probe: WithProbes says how many
// must end well, in stages, such as 1, 5, 20. Every probe has a lease, so one that
// hangs cannot block the breaker. A failed recovery doubles the open period, and a
// healthy time as long as that period halves it again. WithRecovery then lets the
// load come back step by step. WithProbeBudget shares the right to probe in a
// fleet: ten breakers that each send five probes to a backend that can take twenty
// calls will keep it down.
//
// # Who ended the call
//
// What an error means is decided by sluice.Classify, unless a classifier says
// otherwise: a caller who cancels says nothing about the dependency, a time limit
// of ours does. Refusals by this or another guard are never counted.
//
// # Concurrency properties
//
// Allow, Do, Peek, State and settling take no lock and allocate nothing in Closed
// and Open, and when they refuse in HalfOpen; giving and settling a probe takes a
// mutex for a few instructions and allocates its place. There are no goroutines
// and no timers: time passes when somebody asks. Listeners, classifiers and probe
// budgets are called with no lock held; listeners get every change of state once,
// in order, one at a time. Update, Force, Trip and Reset may be called at any time
// from anywhere, also from a listener.
//
// Time is monotonic: setting the wall clock changes nothing. In a testing/synctest
// bubble it is the bubble's, so make the breaker within; one that has counted calls
// outside finds itself in the past.
//
// # Choosing numbers
//
//   - slow limit: 1.5 to 2 times the dependency's 99th percentile.
//   - open period: 2 to 3 times what the dependency needs to come back.
//   - window: some seconds, and long enough to hold several times MinRequests at
//     low traffic. Ten buckets do.
//   - MinRequests: so many that one bad call is not a ratio: 20. With less traffic,
//     use WithConsecutiveFailures as well.
//   - probes: 1 for a single instance behind; 1, 5, 20 for a pool that comes back
//     machine by machine.
//   - a Group's keys: hosts or services, never paths or users.
package breaker
