package slidingwindow

// ledger is the obvious time window: it keeps every event and answers by looking
// at all of them. Equal events of one moment share an entry.
type ledger struct {
	buckets, width int64
	newest         int64 // number of the newest bucket that anybody wrote to
	entries        []entry
}

type entry struct {
	bucket int64 // number of the bucket it lies in
	event  Event
	times  int64
}

func (l *ledger) record(at int64, e Event, times int64) {
	if e&(NoVerdict|Slow) == NoVerdict {
		return // it changes nothing, not even what is newest
	}
	l.entries = append(l.entries, entry{at / l.width, e, times})
	l.newest = max(l.newest, at/l.width)
}

// live is what the window holds at now.
func (l *ledger) live(now int64) []entry {
	last := max(l.newest, now/l.width)
	var in []entry
	for _, e := range l.entries {
		if e.bucket > last-l.buckets {
			in = append(in, e)
		}
	}
	return in
}

// sums counts entries by the meaning of the event bits, one at a time.
func sums(entries []entry) Sums {
	var s Sums
	for _, e := range entries {
		verdict := e.event&NoVerdict == 0
		slow := e.event&Slow != 0
		if verdict {
			s.Total += e.times
		}
		if verdict && e.event&Failed != 0 {
			s.Failures += e.times
		}
		if verdict && slow {
			s.Slow += e.times
		}
		if !verdict && slow {
			s.GaveUp += e.times
		}
	}
	return s
}

// script reads a test's choices from fuzz data; when it ends, all are 0.
type script []byte

func (s *script) next() int64 {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int64(b)
}

// gap is how far time moves before the next event: nothing, within a bucket, to
// and around the edges of a bucket and of the span, several spans, a long idle.
func (s *script) gap(width, buckets int64) int64 {
	span := width * buckets
	switch c := s.next(); c % 16 {
	case 0, 1:
		return 0
	case 2:
		return 1
	case 3, 4:
		return c % width
	case 5:
		return width - 1
	case 6, 7:
		return width
	case 8:
		return width + 1
	case 9:
		return (buckets - 1) * width
	case 10:
		return span - 1
	case 11:
		return span
	case 12:
		return span + 1
	case 13:
		return span * (2 + c/16)
	case 14:
		return 1000*span + c
	default:
		return c/16*width + s.next()%width
	}
}
