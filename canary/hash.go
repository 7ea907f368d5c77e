package canary

import "math/bits"

// Hash spec 1. Frozen: every release, on every machine, and any other language that
// follows these lines gives an identity the same point.
//
//	seed  = XXH64(salt, 0)
//	h     = XXH64(id, seed)
//	point = ((h >> 32) × 1 000 000) >> 32
//
// The bytes are hashed as they are given: UTF-8, nothing trimmed, no case folded. The
// salt is the seed and no prefix, so no two pairs of salt and id can run into one
// another. (h >> 32) × 10⁶ is below 2⁵², so a language with doubles only is exact too.

// points is how many points there are: identities are told apart to one ppm.
const points = uint32(All)

// HashPoint returns the point of id by hash spec 1, below 1 000 000. It is what a
// Picker with that salt works with, for those who check another implementation.
func HashPoint(salt, id string) uint32 { return toPoint(xxh64(id, xxh64(salt, 0))) }

// toPoint projects the upper half of a hash; never a modulus, which would lean on the
// lower bits.
func toPoint(h uint64) uint32 { return uint32((h >> 32) * uint64(points) >> 32) }

const (
	prime1 uint64 = 0x9E3779B185EBCA87
	prime2 uint64 = 0xC2B2AE3D27D4EB4F
	prime3 uint64 = 0x165667B19E3779F9
	prime4 uint64 = 0x85EBCA77C2B2AE63
	prime5 uint64 = 0x27D4EB2F165667C5
)

// xxh64 is XXH64 of s with a seed, after Yann Collet's specification:
// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
func xxh64(s string, seed uint64) uint64 {
	h, i := seed+prime5, 0 // by index: cutting s shorter would cost more
	if len(s) >= 32 {
		v1, v2, v3, v4 := seed+prime1+prime2, seed+prime2, seed, seed-prime1
		for ; i <= len(s)-32; i += 32 {
			v1 = round(v1, word(s, i))
			v2 = round(v2, word(s, i+8))
			v3 = round(v3, word(s, i+16))
			v4 = round(v4, word(s, i+24))
		}
		h = bits.RotateLeft64(v1, 1) + bits.RotateLeft64(v2, 7) + bits.RotateLeft64(v3, 12) + bits.RotateLeft64(v4, 18)
		h = merge(merge(merge(merge(h, v1), v2), v3), v4)
	}
	h += uint64(len(s))
	for ; i <= len(s)-8; i += 8 {
		h ^= round(0, word(s, i))
		h = bits.RotateLeft64(h, 27)*prime1 + prime4
	}
	if i <= len(s)-4 {
		h ^= uint64(half(s, i)) * prime1
		h = bits.RotateLeft64(h, 23)*prime2 + prime3
		i += 4
	}
	for ; i < len(s); i++ {
		h ^= uint64(s[i]) * prime5
		h = bits.RotateLeft64(h, 11) * prime1
	}
	h ^= h >> 33
	h *= prime2
	h ^= h >> 29
	h *= prime3
	return h ^ h>>32
}

func round(acc, input uint64) uint64 {
	return bits.RotateLeft64(acc+input*prime2, 31) * prime1
}

func merge(h, v uint64) uint64 { return (h^round(0, v))*prime1 + prime4 }

// word reads eight bytes from i on, the lowest first; the compiler makes one load of
// it.
func word(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func half(s string, i int) uint32 {
	b := s[i : i+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}
