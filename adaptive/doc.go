// Package adaptive is limits that follow what a dependency can do, instead of
// numbers that somebody once guessed.
//
//	t, err := adaptive.NewTimeout("payments", 10*time.Millisecond, 5*time.Second)
//	…
//	err = t.Do(ctx, func(ctx context.Context) error { return pay(ctx, order) })
//
// # Which type
//
//	Timeout       how long a call may take: follows how long calls take
//	TimeoutGroup  one Timeout for each service, route or host
//	Meter         lets a Timeout learn from calls that keep its limit by themselves
//	System        which calls this process takes: refuses some while its queues, CPU or
//	              load are too much
//
// A Timeout stands around each call that goes out, a System in front of all that comes
// in, outermost and once for each process; its Run has to run, or it admits all.
//
// # How long to wait
//
// A time limit that is too short fails calls that would have been answered, and
// makes their callers ask again. One that is too long lets callers queue up behind
// a dependency that is dead. In between lies a number that differs from one
// dependency to the next and changes with every release. The Timeout finds it from
// one wish: cut off no more than one call in a thousand that would have been
// answered within max (see WithTargetFalseTimeouts).
//
//	calls
//	  │    ▄
//	  │   ███▄
//	  │  ██████▄
//	  │ ██████████▄▄
//	  │▄███████████████▄▄▄▄▄▁▁▁▁▁▁▁▁ ▁   ▁
//	  └──────┬──────────────────────┬───┬───────────────┬── time
//	         median              99.9 % limit          max
//	                                   = 1.25 · that
//
// The difficulty is that a limit hides what it would have to know: of a call that
// was cut off one knows only that it would have taken longer. The mean or a quantile
// of the calls that were answered is blind to all that it has cut off itself. Three
// times the mean cuts off 12 % of the calls of an ordinary service, for ever, and
// never finds back when a dependency becomes much slower. So the default counts
// calls that were cut off as what they are, longer than their limit (the Kaplan–Meier
// estimate), and closes the loop: while more calls time out than there should, the
// limit doubles four times a second.
//
// In an outage that would end at max. So while most calls time out, the limit stays
// within four times what it was before, and a few calls, one in a hundred and one a
// second, may run as long as max: they tell a dependency that is slow from one that
// is dead. When the outage is over, what it has taught is forgotten.
//
// # States
//
//	Cold        fewer than 20 calls: the limit is max, or what it was
//	Resolved    the limit is what the calls say
//	Unresolved  too many calls time out, the dependency is alive: the limit grows, up to max
//	Outage      most calls time out: it grows up to OutageCap times the last resolved one
//
// # Who ended the call
//
// A call that returns no error counts with the time that it took. So does an error
// that is an answer all the same, such as sql.ErrNoRows, if WithClassifier says so. A
// call that was cut off, by the limit, by its caller, or by a limit further out or in,
// counts as longer than that. Nothing is learnt from a call that failed, for a
// connection is refused in no time; nor from one that was throttled, ignored or refused
// by a guard (see sluice.Classify).
//
// A call whose caller leaves it less time than the median call takes is refused at
// once with an error that matches ErrDeadlineTooShort; but for four a second, without
// which a wrong median could never be found out.
//
// Do returns call's error as it is. So that it tells that the limit ended the call, and
// matches sluice.ErrTimeout, call returns context.Cause(ctx) where it would return
// ctx.Err(); net/http does so by itself.
//
// Put the Timeout inside the breaker, so that its end counts as a failure, and inside
// the retry, so that each attempt has its own limit. The probe of a half-open breaker
// runs with max; while the breaker is open, no calls end and the limit stays.
//
// When this process itself is paused or starved, deadlines pass unnoticed and answers
// wait unread. Limits are then stretched, by as much as deadlines were noticed late,
// to at most four times.
//
// # Other rules
//
//	MeanMultiple(3)    3 times the mean of the last 100 calls; grows when it cuts calls off
//	Quantile(0.99, 2)  2 times the 99th percentile
//	RFC6298()          what TCP does
//	Fixed(d)           no adapting at all
//
// In simulations of 100 calls a second, this share of calls is cut off that would have
// been answered within 5 s, and this long a call waits in vain in an outage that
// begins when calls take 20 ms; slow is 300 ms instead of 20 from one moment to the
// next, after five seconds. The tests repeat them.
//
//	                    FalseTimeouts  MeanMultiple  Quantile  RFC6298  Fixed
//	                       (0.001)         (3)       (0.99, 2)           (1s)
//	lognormal, σ = 0.5      0.01 %        0.7 %       0.01 %     4 %     0 %
//	lognormal, σ = 1        0.04 %        6.5 %       0.1 %      9 %     0 %
//	lognormal, σ = 1.5      0.05 %       11 %         0.3 %     15 %     0.5 %
//	10 % cache misses       0.02 %       10 %         0 %       10 %     0 %
//	0.5 % slow mode         0.01 %        0.5 %       0.5 %      1.2 %   0 %
//	slow, after 5 s         0.4 %         0.6 %       0.2 %      3 %     0.4 %
//	wait in an outage       0.7 s         4.8 s       4.4 s      4.4 s   1 s
//
// WithEstimator takes an Estimator of your own.
//
// # Concurrency properties
//
// Value is one atomic load. Begin and settling take no lock and allocate nothing;
// every 250 ms, the call that ends works out the limit anew, which takes some
// microseconds, while others go on with the old one. There are no goroutines and no
// timers beside those of the contexts that Do and Attempt.Context make. Classifiers
// and Estimators are called with no lock held. Update may be called at any time from
// anywhere.
//
// Time is monotonic: setting the wall clock changes nothing. In a testing/synctest
// bubble it is the bubble's, so make the Timeout within; one that has seen calls
// outside finds itself in the past.
//
// # Choosing numbers
//
//   - base: the shortest limit that makes sense at all, so that a dependency which
//     always answers in microseconds is not cut off by one garbage collection: 10 ms in
//     a data centre.
//   - max: what callers can bear when the dependency needs it. It is the limit until
//     20 calls have ended, and of probes.
//   - false timeouts: 0.001 where a call that is cut off costs a user something; 0.01
//     where it is sent again to somebody else. A heavy tail makes the limit long: with
//     σ = 1.5 it is over 2 s at a median of 20 ms. Who would rather fail fast sets max.
//   - history: the defaults suit from one call in some seconds to any number.
//   - keys of a TimeoutGroup: what has a latency of its own, such as a route or a host.
//     Mixed together, the slow ones decide for all. Never users or paths with numbers in
//     them. WithCompact if there are many.
package adaptive
