package hashes

import (
	"crypto/sha1"
	"encoding/binary"
	"strconv"
)

// points is everybody.
const points = 1_000_000

// Unleash is where a gradual rollout of Unleash has id; the salt is the strategy's
// groupId. Its step is 1 %. See https://docs.getunleash.io/concepts/stickiness.
func Unleash(salt, id string) uint32 { return hundredth(UnleashBucket(salt, id, 0)) }

// UnleashVariantSeed is the seed with which Unleash chooses among the variants of a
// flag; the one of its gradual rollout is 0.
const UnleashVariantSeed = 86028157

// UnleashBucket is the bucket, from 1 to 100, that Unleash has for id in a group. A
// rollout of p % has those up to p.
func UnleashBucket(group, id string, seed uint32) int {
	return int(murmur3(seed, group, ":", id)%100) + 1
}

// Split is where a Split feature with hash algorithm 2 has id; the salt is the seed of
// the feature, in decimals as in its definition (it may be negative), and without a
// number there it is 0. Its step is 1 %.
func Split(salt, id string) uint32 {
	seed, _ := strconv.ParseInt(salt, 10, 64)
	return hundredth(SplitBucket(uint32(seed), id))
}

// SplitBucket is the bucket, from 1 to 100, that Split has for id.
func SplitBucket(seed uint32, id string) int { return int(murmur3(seed, id)%100) + 1 }

// hundredth is where the bucket of that number, from 1, begins.
func hundredth(bucket int) uint32 { return uint32(bucket-1) * (points / 100) }

// LaunchDarkly is where a percentage rollout of LaunchDarkly has id; the salt is the
// flag's key, a dot and the flag's salt. LaunchDarkly works with floats of 24 bits, so
// the last ppm before a step may differ.
func LaunchDarkly(salt, id string) uint32 {
	return min(uint32(LaunchDarklyBucket(salt, id)*points), points-1)
}

// LaunchDarklyBucket is the place in [0, 1) that LaunchDarkly has for id. See
// https://docs.launchdarkly.com/sdk/concepts/flag-evaluation-rules.
func LaunchDarklyBucket(salt, id string) float32 {
	sum := sha1.Sum([]byte(salt + "." + id))
	const all = 1<<60 - 1 // 15 hexadecimal digits
	return float32(binary.BigEndian.Uint64(sum[:8])>>4) / float32(all)
}

// GrowthBook1 is where GrowthBook's first hash has id; the salt is the experiment's
// key or seed. Its step is 0.1 %. Experiments whose keys differ in few characters are
// not independent: two of 10 % may share nobody.
func GrowthBook1(salt, id string) uint32 { return fnv1a(id, salt) % 1000 * (points / 1000) }

// GrowthBook2 is where GrowthBook's second hash has id; the salt is the experiment's
// seed. Its step is 0.01 %. See https://docs.growthbook.io/lib/build-your-own.
func GrowthBook2(salt, id string) uint32 {
	inner := strconv.FormatUint(uint64(fnv1a(salt, id)), 10)
	return fnv1a(inner) % 10_000 * (points / 10_000)
}

// Flagd is where the fractional operation of flagd has id; the salt is the flag's key.
// It projects to the sum of the weights, and so agrees to the point.
func Flagd(salt, id string) uint32 {
	return uint32(uint64(murmur3(0, salt, id)) * points >> 32)
}
