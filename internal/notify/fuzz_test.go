package notify

import "testing"

// FuzzQueue compares the ring with a slice that keeps what waits.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{2, 1, 4, 1, 1, 1, 1})
	f.Add([]byte{254, 254, 254, 254, 254, 3, 3, 254, 255, 255, 2, 255, 255})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var q Queue[int]
		var want []int
		pushed, dropped := 0, uint64(0)
		for _, step := range steps[:min(len(steps), 200)] {
			for range 2 * (int(step) / 2) { // even steps push, odd ones take
				if step%2 == 0 {
					pushed++
					q.Push(pushed)
					want = append(want, pushed)
					if len(want) > Limit {
						want = want[1:]
						dropped++
					}
					continue
				}
				v, ok := q.next()
				if ok != (len(want) > 0) || ok && v != want[0] {
					t.Fatalf("next = %d, %v, want the first of %v", v, ok, want)
				}
				if ok {
					want = want[1:]
				}
			}
			if q.Dropped() != dropped || int(q.waiting) != len(want) {
				t.Fatalf("dropped %d, waiting %d, want %d, %d", q.Dropped(), q.waiting, dropped, len(want))
			}
			held := 0
			for _, v := range q.ring {
				if v != 0 {
					held++
				}
			}
			if held != len(want) || len(q.ring) > max(1, 4*len(want)) {
				t.Fatalf("a ring of %d holds %d values, %d wait", len(q.ring), held, len(want))
			}
		}
	})
}
