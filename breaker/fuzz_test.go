package breaker

import (
	"math/rand/v2"
	"testing"
)

// FuzzBreaker lets the bytes choose what TestT29 leaves to chance: the
// configuration, what is done, in which order, and when.
func FuzzBreaker(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a breaker is what its model is"))
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 0))
		steps := make([]byte, 400)
		for i := range steps {
			steps[i] = byte(r.Uint32())
		}
		f.Add(steps)
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		steps = steps[:min(len(steps), 2000)] // more shows nothing new, and takes the square of its time
		w := newWalk(t, "fuzz", func(n int) int {
			if len(steps) == 0 {
				return 0
			}
			next := steps[0]
			steps = steps[1:]
			return int(next) % n
		})
		for len(steps) > 0 {
			w.step()
		}
		w.end()
	})
}
