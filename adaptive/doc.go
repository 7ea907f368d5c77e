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
//	Limiter       how many calls may be under way at once: follows how long calls take
//	LimiterGroup  one Limiter for each service, route or host
//	System        which calls this process takes: refuses some while its queues, CPU or
//	              load are too much
//
// A Timeout stands around each call that goes out. A Limiter stands in front of the calls
// that something serves, or around those to one dependency. A System stands in front of
// all that comes in, outermost and once for each process; its Run has to run, or it admits
// all. Where one route, host or pool is what becomes full, take a Limiter, which finds the
// right number; where the process is, a System, which sees its CPU and queues; both
// together do no harm. A bulkhead is a Limiter whose number somebody knows.
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
// # How many at once
//
// What serves calls can work on some of them at a time. More than these wait for each
// other, in a queue that nobody sees: they are not served sooner for being let in, but
// time out later and are sent again. Fewer leave it idle.
//
//	calls a second                          time of a call
//	  │        ┌───────────────                 │            ╱
//	  │       ╱                                 │          ╱
//	  │     ╱                                   │        ╱
//	  │   ╱                                     │───────╯
//	  │ ╱                                       │
//	  └────────┬──┬──────────── under way       └────────┬──┬────────── under way
//	           │  the Limiter's number                   │  the same
//	           as many as can be worked on
//
// To the left of the bend, one call more is one more served; to the right, it only makes
// the others slower. The Limiter finds the bend by the right-hand curve: a call that takes
// longer than the baseline, which is what calls take where none waits, has waited for the
// rest of it (see Vegas). It goes a few calls beyond, so that there is always something
// to do.
//
// The baseline must not be read in an overload, or it is the overload's. Many a limiter
// that does so grows for as long as the overload lasts, and with it the waiting. So this
// one reads it where calls are few, and otherwise lets the queue drain first: for two
// windows in some 75 it admits a few calls less than can be worked on.
//
//	Vegas()      the default; in front of what serves calls
//	AIMD(d)      around calls to a dependency that says when it has enough, or that many
//	             others use: grows until calls are throttled or time out, or take longer
//	             than d
//	Gradient2()  compares with the average of many windows; for those who know it
//	FixedLimit   no adapting at all
//
// In simulations of 16 workers whose calls take 10 ms, and with 150 % of what they can
// do, the limit and the time within which 99 % of the calls are answered (alone: 28 ms)
// are these; settled is how long after a jump from 60 to 140 % the median call takes less
// than twice its time. The tests repeat them.
//
//	                    Vegas()      AIMD(50ms)    Gradient2()
//	after a minute      24, 32 ms    77, 66 ms     33, 39 ms
//	after 15 minutes    23, 32 ms    75, 66 ms    135, 104 ms
//	settled             0.3 s        never         4 s
//	refused at 60 %     none         none          none
//
// Calls that were throttled (see sluice.Classify) or timed out lower the limit. A call that
// failed otherwise says nothing, for a connection is refused in no time; WithLimiterClassifier
// can say which errors mean that there are too many. Never does the limit grow while less
// than half of it is used: nothing has been seen of what lies beyond.
//
// By default nobody waits for leave. WithQueue lets some, for a moment; then the more
// important calls go first, and in an overload the least important are refused first. A
// part of the places can be guaranteed to them, see WithShares.
//
// WithLimitAlgorithm takes a LimitAlgorithm of your own.
//
// # Concurrency properties
//
// Acquiring a free place and settling take no lock and allocate nothing, nor does being
// refused where nobody may wait; a call that ends works the limit out anew, once a second
// or, in an overload that begins, ten times. Waiting takes a mutex for a few instructions.
// LimitAlgorithms and classifiers are called with no lock held.
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
//   - limits of a Limiter: Min and Max are for emergencies, 1 and 1000 suit most. Initial is
//     what calls per second × their duration say (Little's law), or what the dependency is
//     known to bear.
//   - window: a second. Shorter follows sooner, and takes more of chance for a change.
//   - tolerance of a LimitRule: more than the share of calls that time out on a good day.
//   - max healthy of a LimitRule: what nobody should get used to, such as three times the
//     mean of a good day.
//   - queue of a Limiter: as many as the limit, for as long as one or two calls take. A wait
//     that is much longer only makes calls late that are served anyway: set it short, instead
//     of long with CoDel, where all callers are alike.
//   - shares: what the less important calls must get in any case; a tenth is much.
//   - keys of a TimeoutGroup or LimiterGroup: what has a latency of its own, such as a route or a host.
//     Mixed together, the slow ones decide for all. Never users or paths with numbers in
//     them. WithCompact if there are many.
package adaptive
