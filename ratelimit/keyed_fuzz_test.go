package ratelimit

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// FuzzKeyed lets the fuzzer choose the steps of TestKeyed_Model.
func FuzzKeyed(f *testing.F) {
	f.Add([]byte("any steps will do to begin with, for keys come and go with time"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		r := rand.New(&tape{left: steps})
		walkKeys(t, []WhenFull{EvictLeastDebt, DenyNew}[r.IntN(2)], r, len(steps)/4)
	})
}

// A tape is a source of numbers that somebody has written down, and of others after its
// end.
type tape struct {
	left []byte
	rest rand.PCG
}

func (s *tape) Uint64() uint64 {
	if len(s.left) == 0 {
		return s.rest.Uint64()
	}
	var next [8]byte
	s.left = s.left[copy(next[:], s.left):]
	return binary.LittleEndian.Uint64(next[:])
}
