// Package bulkhead bounds how many calls to a resource are under way at once: a
// Bulkhead by counting them, a Pool by running them on workers of its own.
//
//	b, err := bulkhead.New("payments", 64, bulkhead.WithQueue(64, 50*time.Millisecond))
//	…
//	err = b.Do(ctx, func(ctx context.Context) error { return pay(ctx, order) })
//	if errors.Is(err, bulkhead.ErrFull) {
//		return fallback()
//	}
//
// A dependency that becomes slow fills its own bulkhead, and not the whole ship:
// without one its callers pile up, with their goroutines, connections and memory,
// until there is nothing left for calls to other dependencies.
//
// # The way of a call
//
//	call ──► ctx is done? ──► its own error
//	  │
//	  ├─ a place is free, and nobody waits ────────────► runs, and gives it back
//	  │                                                  ▲
//	  ├─ room in the queue ──► waits ──► its turn comes ─┘
//	  │                          ├─ ctx ends ──► its own error
//	  │                          └─ MaxWait is over, or whoever is more
//	  │                             important took its room ──► refused
//	  └─ else ──► refused
//
// Nobody passes those that wait. A call that takes several places (AcquireN) waits in
// its turn until there are as many, and those behind it wait too, also where fewer
// would do: else it might wait for ever.
//
// # Who goes first
//
// FIFO is fair, and right as long as the queue evens out bursts. A queue that has not
// been empty for 100 ms does not: it is in overload, and makes every call late by its
// whole length. Three things help then, alone or together:
//
//   - WithCoDel: who comes in overload may wait only a few milliseconds, so the queue
//     gets empty again and those that are served are served at once.
//   - WithOrder(AdaptiveLIFO): the newest call goes first in overload; the oldest are
//     given up, whose callers are likely to have given up too.
//   - WithAging: more important calls (sluice.WithPriority) go first, and take the
//     room of less important ones; how long these are passed over is bounded by time.
//
// # Bulkhead or Pool
//
// In Java a call blocks a thread, which is dear, so Hystrix gave each dependency a
// pool of threads, and left a thread behind when its call took too long. A server in
// Go has a goroutine for every request already: one that waits costs a few
// kilobytes, and none can be left behind, since only the ctx ends what it does. So a
// Bulkhead gives all the isolation that there is to have, for a fraction of the
// price. Measured on two cores of a virtual machine (BenchmarkPoolHandoff in bench,
// where one atomic addition takes 6 ns):
//
//	                                    time      allocations
//	call behind a Bulkhead              20 ns     0
//	call on a worker of a Pool          740 ns    2, 224 B
//	background, goroutine and Bulkhead  690 ns    3, 192 B
//	background, Submit to a Pool        870 ns    4, 272 B
//
// The time of a Pool is that of two goroutines waking each other; beside a call over a
// network it is nothing. What it buys is another thing: work that goes on after its
// submitter has gone its way, with a bound on how much of it runs and how much is
// queued, so that a flood of it becomes refusals and not goroutines; a future for its
// result; panics that end one task and not the process; and Close, which waits for
// all of it. Take a Pool for that, and a Bulkhead for everything that is waited for.
//
// # Concurrency properties
//
// Acquiring a free place, giving it back and being refused take no lock and allocate
// nothing. Waiting takes a mutex for a few instructions to get into the queue and out
// of it, and whoever gives back a place while others wait takes it too, to hand the
// place on. A place that is handed to a call whose ctx has ended is passed on, so none
// is lost; no ctx that is done ever gets one. Nothing here calls foreign code with a
// lock held, and there are no listeners.
//
// A Bulkhead has no goroutines. A Pool has its workers, while there is work and for
// KeepAlive after it; its queue and workers are under one mutex. In a testing/synctest
// bubble, close a Pool before the test ends.
//
// # Choosing numbers
//
//   - limit and workers: calls per second × their duration is how many are under way
//     (Little's law). Take the highest rate that is to be served and the 99th
//     percentile of the duration: 200/s × 0.25 s = 50. What the dependency can bear is
//     the upper bound: a share of its connections or threads for each of your
//     processes.
//   - MaxQueue: up to the limit. The last one in it waits for about as long as one
//     call takes; a longer queue serves nobody in time.
//   - MaxWait: what the caller has to spare, which is its own time limit less the 99th
//     percentile. Not much more than a call takes.
//   - CoDel: a target of 5 ms and an interval of 100 ms suit calls of milliseconds. The
//     target must be longer than places become free, duration ÷ limit, or all who wait
//     are refused; the interval should be some times longer than one call takes.
//   - Aging: half of MaxWait. With as much as MaxWait the least important get only what
//     is left.
//   - KeepAlive: longer than the pauses between bursts; an idle worker costs its stack.
//   - a Group's keys: hosts or services, never paths or users.
package bulkhead
