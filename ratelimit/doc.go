// Package ratelimit decides how fast calls may go: so many tokens in so long a
// time, for everybody, for each user, for each route, or for all of them at once.
//
//	limit, err := ratelimit.New("search", ratelimit.PerSecond(100), ratelimit.WithBurst(200))
//	…
//	if d := limit.Take(1); !d.OK() {
//		return d.Err() // or tell the caller to come again after d.RetryAfter()
//	}
//
// # Words
//
// A Rate is so many tokens in so long a time, both whole: PerSecond(100), "60/m". A
// call takes one token, or as many as it weighs. A limiter that is asked for n answers
// with a Decision: OK or not, what is left, when to come again, when all is back. A
// Decision is four words and works out what it is asked for when it is asked. A refusal
// as an error is a *LimitError, which matches ErrLimited and sluice.ErrRejected. A
// Layer is a limiter, or one key of one, in a call of TakeAll.
//
// # The token bucket
//
//	  rate
//	   ▼
//	│  ·  │ ── burst: what comes when it is full runs over
//	│     │
//	│▒▒▒▒▒│ ── level: what can be taken at once
//	└──┬──┘
//	   ▼
//	 calls        at most burst + rate × w in any time w
//
// A Limiter begins full. A call that finds no token is refused, or waits: Allow and
// Take ask and never block; Wait waits in order, and only if there will be a token in
// time; Reserve is for those who do their own waiting; Do is a sluice.Guard. Debit
// charges what a call turned out to cost, and may leave a debt. Refund gives back.
//
// Rates are exact. A Limiter counts the tokens that have come since it was made, in
// whole parts of a token, so nothing drifts: any rate that is a fraction of at most 16
// tokens in a whole number of nanoseconds (7/s, 3000000/s, 1/d) has no error at all,
// any other is off by less than a sixth of a nanosecond, each time the bucket has been
// full. RetryAfter is exact, too: the same call is admitted then, and not a nanosecond
// before, unless somebody else comes.
//
// # Which type
//
//	Limiter        a token bucket: bursts, then evenly. Take this unless you know better
//	Keyed          a token bucket for each of millions of keys, such as users
//	KeyedExact     a Limiter for each of a few keys with names, such as routes
//	HotParameters  a Keyed with exceptions, that tells who is refused most
//	Priorities     a token bucket for calls of three priorities, of which none starves
//	StrictWindow   never more than L in any W, in one word
//	SlidingWindow  L in W, all of it at once if need be; up to 2 L − 1 at a seam
//	SlidingLog     never more than L in any W and never less, for a small L
//	Pacer          one after the other, evenly, with a bounded queue: no bursts at all
//	WarmUp         a token bucket that begins slowly and gets faster with demand
//	Shared         one limit for all processes, through a Store
//	SharedGroup    a Shared for each key
//
// TakeAll takes from several at once, or from none:
//
//	d := ratelimit.TakeAll(1, perUser.By(user), perAPI.By(route), global.Layer())
//
// from the most specific to the most general, so that who is over his own limit uses
// nothing up that others share. A limit for each user alone stops nobody who has a
// thousand users: put one for all behind it.
//
// # Windows
//
// In any window of length W wherever it begins, at a limit of L:
//
//	                        most      state     refuses too much
//	fixed window            2 L       a word    never (there is none here)
//	SlidingWindow           2 L − 1   a word    when the window before was uneven
//	Limiter, burst L, L/W   2 L − 1   a word    never
//	StrictWindow            L         a word    its share of L in each W, in the long run
//	SlidingLog              L         8–16 L B  never
//
// A window has its beginning and not its end: a token and one that comes exactly W later
// are not in the same. For more than L somebody has to use up all there is at the end of
// a window, and then again as fast as he is let; in the windows that follow one another
// from its beginning, a SlidingWindow never gives more than L. Take it for what users see
// in their plan, "1000 an hour"; a StrictWindow for the limit of somebody else, who may
// count as he likes; a SlidingLog for a few tokens that have to be counted exactly; and a
// Limiter for what is no promise to anybody. WithRejectedCounted lets the attempts of
// those count who guess passwords.
//
// # Shared limits
//
// A Shared limiter decides on two levels. Its Store, which all processes reach, has the
// bucket; each process, a node, buys a lease of its tokens and gives them out by itself:
//
//	l, err := ratelimit.NewShared("api", store, ratelimit.Global(ratelimit.PerSecond(90)))
//	…
//	go l.Run(ctx)
//	…
//	d := l.Take(1)
//
//	calls ─▶ node ◀─ lease ─┐
//	calls ─▶ node ◀─ lease ─┼─ Store: a bucket for each key
//	calls ─▶ node ◀─ lease ─┘
//
//	                     more than burst + rate × w    calls of the store
//	a lease for each     a lease of each node          two in SyncEvery, by Run
//	node, the default
//	WithStrict           nothing                       one for each call, which waits
//	store down           what the nodes held, and      none; one try in a while
//	                     what each was the sooner told
//
// A lease is paid for before it is used, so in the long run the rate holds exactly. It is
// what the node needs for SyncEvery, at most its share of what comes in that time and a
// quarter of its share of the burst; Run buys it again when half of it is gone, and
// returns it when nobody uses it. A node that needs less than one token in two SyncEvery
// has none: each of its calls asks. What the store has refused is not asked for again
// until it may be there.
//
// When five calls of the store have failed in a row, or WithStoreGuard's guard refuses
// one, the node goes into ModeFallback: it decides by itself, as WithFailure says, and
// tries the store after one second, two, four, up to thirty: after a long outage it may
// be half a minute until the store is used again (WithStoreGuard's guard chooses its own
// times). FailLocal gives it its part of the rate and of the burst, less what it has
// given out lately; the store is told of what was given out meanwhile when it is back.
// Global thresholds are divided by the nodes, which Run counts through the store;
// ClusterAverage multiplies by them.
//
// Global is a limit for all nodes together, ClusterAverage as much for each of them,
// whoever uses it, PerNode one that nobody shares. Run must run for all of this to happen
// in the background. Package storetest examines stores; NewMemoryStore is one within a
// process.
//
// # Giving back
//
// What a guard further in refuses is given back by Do, sluice.Call and sluice.Chain;
// what a layer of TakeAll gave is given back when a later one refuses; Refund and
// Cancel do it by hand. It is exact as long as nobody else has taken since, and never
// too much: what is kept stays within burst + rate × w. What runs over while a call
// holds its token cannot be kept for it. Those who wait move up when one of them goes
// away.
//
// # Concurrency properties
//
// Asking, refusing and giving back take no lock, allocate nothing and read the clock
// once; a refusal writes nothing but its count. An admission is one compare-and-swap of
// one word. There are three exceptions: a SlidingLog, which admits seldom by its nature,
// does it under a mutex; a Keyed locks a page of its table for a key that is new or
// comes by another class than before; and a call of a Shared that finds no lease waits
// for the store.
// Counting answers costs one more atomic addition, spread over cache lines; WithoutTotals
// leaves it out. Waiting takes a mutex for a few instructions, a place in the queue, and
// a timer for the first in it. Nothing starts a goroutine or needs closing, except that
// Shared has a Run.
//
// Update may be called at any time from anywhere: it keeps the tokens, the debts and
// the promises. Time is monotonic: setting the wall clock changes nothing, and a
// reading that is late can only refuse too much. In a testing/synctest bubble it is the
// bubble's, so make the limiter within.
//
// # Choosing numbers
//
//   - rate: what the thing behind can serve, measured, less a fifth.
//   - burst: what may come at once. For a user, what one page makes; for all, what the
//     queue behind can hold. The default is all of Rate.Per, which is much for 5000/m.
//   - MaxWait: what the caller has left after the call's own time; most callers have
//     none, and are better refused at once.
//   - Priorities: assure each class the least that it can live with, not what it would
//     like; what is not assured is shared, and what is not used is lent.
//   - in a chain: retry → rate limit → bulkhead → breaker → timeout → call.
package ratelimit
