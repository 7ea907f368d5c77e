package hashes

import "math/bits"

// murmur3 is MurmurHash3_x86_32 of the parts, one after another, after Austin
// Appleby's description: https://github.com/aappleby/smhasher/wiki/MurmurHash3.
func murmur3(seed uint32, parts ...string) uint32 {
	h, block, filled, length := seed, uint32(0), 0, uint32(0)
	for _, part := range parts {
		for i := range len(part) {
			block |= uint32(part[i]) << (8 * filled)
			length++
			if filled++; filled == 4 {
				h = bits.RotateLeft32(h^mixed(block), 13)*5 + 0xe6546b64
				block, filled = 0, 0
			}
		}
	}
	h ^= mixed(block) // of an empty block it is 0
	h ^= length
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

func mixed(block uint32) uint32 {
	return bits.RotateLeft32(block*0xcc9e2d51, 15) * 0x1b873593
}

// fnv1a is FNV-1a of 32 bits of the parts, one after another.
func fnv1a(parts ...string) uint32 {
	h := uint32(2166136261)
	for _, part := range parts {
		for i := range len(part) {
			h = (h ^ uint32(part[i])) * 16777619
		}
	}
	return h
}
