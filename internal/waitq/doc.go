// Package waitq is where callers wait for places that are all taken. A Queue
// decides who waits, who goes next and who has to leave; a Semaphore counts places,
// and puts such a queue before them.
//
// # Overload
//
// A queue that has not been empty for an interval is in overload: it no longer
// evens out bursts, it only makes everybody late. Then those that come may wait a
// shorter time (Policy.Target), and the newest may go first (Policy.Newest), whose
// callers are the likeliest to be still there. This is the variant of CoDel, and
// the adaptive LIFO, of Ben Maurer, "Fail at Scale", ACM Queue 13(8), 2015. CoDel
// itself (RFC 8289) looks at how long those that leave have waited, which says
// nothing when the newest go first, nor while nothing moves.
package waitq
