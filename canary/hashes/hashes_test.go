package hashes

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMurmur3(t *testing.T) {
	for _, c := range []struct {
		text string
		seed uint32
		want uint32
	}{
		{"", 0, 0},
		{"", 1, 0x514e28b7},
		{"", 0xffffffff, 0x81f16f39},
		{"test", 0, 0xba6bd213},
		{"hello", 0, 0x248bfa47},
		{"hello, world", 0, 0x149bbb7f},
		{"The quick brown fox jumps over the lazy dog", 0, 0x2e4ff723},
		{"The quick brown fox jumps over the lazy dog", 0x9747b28c, 0x2fa826cd},
	} {
		assert.Equal(t, c.want, murmur3(c.seed, c.text), c.text)
		for i := range len(c.text) {
			assert.Equal(t, c.want, murmur3(c.seed, c.text[:i], "", c.text[i:]), "in parts")
		}
	}
}

func TestFNV1a(t *testing.T) {
	assert.Equal(t, uint32(0x811c9dc5), fnv1a())
	assert.Equal(t, uint32(0xe40c292c), fnv1a("a"))
	assert.Equal(t, uint32(0xbf9cf968), fnv1a("foo", "bar"))
}

// The vectors that Unleash's client specification has.
func TestUnleash(t *testing.T) {
	assert.Equal(t, 73, UnleashBucket("gr1", "123", 0))
	assert.Equal(t, 25, UnleashBucket("groupX", "999", 0))
	assert.Equal(t, 96, UnleashBucket("gr1", "123", UnleashVariantSeed))
	assert.Equal(t, 60, UnleashBucket("groupX", "999", UnleashVariantSeed))
	assert.Equal(t, uint32(720_000), Unleash("gr1", "123"), "outside of 72 %, inside of 73 %")
}

// Those that LaunchDarkly's SDKs share.
func TestLaunchDarkly(t *testing.T) {
	for id, want := range map[string]float32{
		"userKeyA": 0.42157587, "userKeyB": 0.6708485, "userKeyC": 0.10343106, "33333": 0.54771423,
	} {
		assert.InDelta(t, want, LaunchDarklyBucket("hashKey.saltyA", id), 1e-7, id)
	}
	assert.Equal(t, uint32(421_575), LaunchDarkly("hashKey.saltyA", "userKeyA"))
}

// Those that GrowthBook's SDKs share.
func TestGrowthBook(t *testing.T) {
	assert.Equal(t, uint32(220_000), GrowthBook1("", "a"))
	assert.Equal(t, uint32(946_000), GrowthBook1("b", "a"))
	assert.Equal(t, uint32(50_500), GrowthBook2("seed", "a"))
	assert.Equal(t, uint32(257_500), GrowthBook2("foo", "ab"))
}

// The sentence with a published hash of 0x2fa826cd.
func TestSplit(t *testing.T) {
	const id = "The quick brown fox jumps over the lazy dog"
	assert.Equal(t, int(0x2fa826cd%100)+1, SplitBucket(0x9747b28c, id))
	signed := fmt.Sprint(int32(math.MinInt32 + (0x9747b28c - 1<<31)))
	assert.Equal(t, uint32(0x2fa826cd%100)*10_000, Split("2538058380", id))
	assert.Equal(t, Split("2538058380", id), Split(signed, id), "a seed of the other sign: %s", signed)
	assert.Equal(t, Split("0", id), Split("", id))
}

func TestFlagd(t *testing.T) {
	assert.Equal(t, uint32(uint64(0x149bbb7f)*points>>32), Flagd("hello, ", "world"), "the flag's key and the id, joined")
	assert.Equal(t, uint32(80_501), Flagd("hello, ", "world"))
	assert.Equal(t, uint32(0), Flagd("", ""))
}

// All stay below a million, use all of it, and say the same twice.
func TestAllAreInRange(t *testing.T) {
	for name, hash := range map[string]func(salt, id string) uint32{
		"Unleash": Unleash, "Split": Split, "LaunchDarkly": LaunchDarkly, "GrowthBook1": GrowthBook1, "GrowthBook2": GrowthBook2, "Flagd": Flagd,
	} {
		low, high, below := uint32(points), uint32(0), 0
		const n = 20_000
		for i := range n {
			id := fmt.Sprint("user-", i)
			point := hash("checkout", id)
			low, high = min(low, point), max(high, point)
			if point < points/10 {
				below++
			}
		}
		assert.Less(t, low, uint32(10_001), name)
		assert.GreaterOrEqual(t, high, uint32(989_000), name)
		assert.Less(t, high, uint32(points), name)
		assert.InDelta(t, n/10, below, 200, name)
	}
}
