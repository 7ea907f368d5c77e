// Package slidingwindow counts what happened lately: over the last ten seconds,
// or in the last hundred calls. It is what a circuit breaker decides on, and is
// of use to whatever else asks "how has this dependency been doing".
//
// # Which type
//
//	Counts      calls, failures and slow calls over a span of time; what a breaker needs
//	LeapArray   any counters of your own over a span of time
//	Ring        the last n outcomes, however old: for calls too rare to fill a span
//	Histogram   durations, for quantiles; one window's worth, replaced to forget
//
// Counts and Ring take an Event, one finished call as a set of facts, and answer
// with Sums.
//
// # The ring of buckets
//
// A time window is a ring of buckets, each for one width of time. This one has
// five of 2 s, so it spans 10 s:
//
//	time      100      102      104      106      108      110      112
//	           |        |        |        |        |        |        |
//	slot       0        1        2        3        4        0
//	       +--------+--------+--------+--------+--------+--------+
//	       | gone   |  12    |   9    |  14    |  11    |   3 .. |
//	       +--------+--------+--------+--------+--------+--------+
//	                ^ oldest                                ^ now, 111
//	                |-------------- the window -------------|
//
// The bucket that begins at start stands in slot (start/width) mod 5. The grid is
// absolute, so every goroutine finds the same bucket without asking anybody. When
// time reaches 110, the first writer puts a new bucket into slot 0 in place of
// the one of 100; nobody clears anything. A writer that was held up and still
// has the old bucket adds to the old bucket, which is where its call belongs.
//
// n buckets cover between span−width and span, 8 to 10 s here: the newest is not
// over yet and the oldest leaves whole.
//
// Readers decide by start what is still part of the window. A window without
// traffic therefore empties by itself; there is no timer and no goroutine.
//
// # Concurrency
//
// Everything here is safe for concurrent use and takes no lock. A time window
// loses no record and counts none twice at a bucket roll, whatever the
// interleaving. A reader never sees more failures than calls, nor a negative
// number. A sum taken while others record holds every record that was finished
// before and may hold those that were under way; a bucket whose time ends while
// it is being summed may be left out.
//
// Counts gives busy buckets a cache line per stripe of goroutines, so it scales
// with the cores. The Ring does not: the order of the last n outcomes is one
// sequence, and every record takes a place in it.
//
// Recording allocates nothing, except a time window's one bucket per width.
//
// Time is an int64 of nanoseconds on the package's monotonic clock. The methods
// that end in At take it, for a caller that has read the clock (see Now) already
// and for tests, which can make it anything from 0 up. Setting the wall clock
// changes nothing.
//
// # Choosing numbers
//
// Ten buckets are a good number: the window then covers 90 to 100 % of its span.
// More make it smoother and a sum dearer. One bucket forgets everything at the
// end of each span, so that a burst across that moment is counted in two halves
// and trips nothing; two are the fewest that make sense.
//
// The span is a compromise: a long one reacts late and forgives late, a short one
// sees too few calls to be sure. Take the shortest that still holds several times
// the calls that a decision needs; 10 s suits a dependency with 10 calls a second
// or more. If that would make it minutes, take a Ring of that many calls, and
// remember that its news may be old.
//
// A Histogram of 8 sub-buckets an octave answers at most 12.5 % too high, one of
// 16 at most 6.25 %; time limits are seldom known better than that.
package slidingwindow
