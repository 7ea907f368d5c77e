package canary

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// The vectors of hash spec 1. They are part of what the package promises: if this
// table has to change, users are dealt anew.
var vectors = []struct {
	salt  string
	seed  uint64
	id    string
	hash  uint64
	point uint32
}{
	{"checkout-v2", 0x62545e626c0959a3, "a", 0x41c29b2dbf473398, 256875},
	{"checkout-v2", 0x62545e626c0959a3, "user-1", 0xd37df1bd414a7bb4, 826140},
	{"checkout-v2", 0x62545e626c0959a3, "user-2", 0x840ffc0f602f033c, 515868},
	{"checkout-v2", 0x62545e626c0959a3, "42", 0xd37ccf7af2a6406d, 826123},
	{"checkout-v2", 0x62545e626c0959a3, "alice@example.com", 0x856968ab37b5b262, 521139},
	{"checkout-v2", 0x62545e626c0959a3, "用户", 0x7ef6b89e0485ba57, 495952},
	{"checkout-v2", 0x62545e626c0959a3, "550e8400-e29b-41d4-a716-446655440000", 0x2bbedfe79232bf02, 170881},
	{"checkout-v2", 0x62545e626c0959a3, strings.Repeat("0123456789abcdef", 3), 0x50e3b3b8d370d1e5, 315974},
	{"search", 0x71e6f6d1e157dbfe, "user-1", 0xa57c560325d7613c, 646428},
	{"search", 0x71e6f6d1e157dbfe, "42", 0xe061120d49238111, 876481},
}

func TestHash_Vectors(t *testing.T) {
	for _, v := range vectors {
		assert.Equal(t, v.seed, xxh64(v.salt, 0), v.salt)
		assert.Equal(t, v.hash, xxh64(v.id, v.seed), v.id)
		assert.Equal(t, v.point, HashPoint(v.salt, v.id), v.id)
	}
}

// What others publish of XXH64, for the lengths that take each way through it.
func TestHash_IsXXH64(t *testing.T) {
	assert.Equal(t, uint64(0xEF46DB3751D8E999), xxh64("", 0))
	assert.Equal(t, uint64(0xD24EC4F1A98C6E5B), xxh64("a", 0))
	assert.Equal(t, uint64(0x44BC2CF5AD770999), xxh64("abc", 0))
	assert.Equal(t, uint64(0x0B242D361FDA71BC), xxh64("The quick brown fox jumps over the lazy dog", 0))
}

// A language whose only numbers are doubles must get the same points.
func TestHash_DoublesAreExact(t *testing.T) {
	for _, h := range []uint64{0, 1 << 32, 0x41c29b2dbf473398, 0xd37df1bd414a7bb4, ^uint64(0), 4294 << 32, 4295 << 32} {
		upper := float64(h >> 32)
		assert.Equal(t, float64(toPoint(h)), float64(uint64(upper*1e6/(1<<32))), "%x", h)
	}
	assert.Equal(t, points-1, toPoint(^uint64(0)), "the last point, and none beyond")
}

// golden is everything about a pick that must be the same in every process: hashes,
// layouts, and whole pickers with many identities.
func golden() string {
	var b strings.Builder
	for _, v := range vectors {
		fmt.Fprintf(&b, "%s %q %x %d\n", v.salt, v.id, xxh64(v.id, xxh64(v.salt, 0)), HashPoint(v.salt, v.id))
	}
	p := sluice.Must(New("checkout", "v1", WithVersion("v2", 0, Percent(10)), WithVersion("v3", 1, PPM(500)),
		WithVersion("v4", 2, Percent(12.5)), WithVersion("v5", 3, Percent(7)), WithVersion("v6", 9, Percent(2))))
	for _, s := range p.Snapshot().Intervals {
		fmt.Fprintf(&b, "%d %d %s\n", s.From, s.To, s.Version)
	}
	sum := sha256.New()
	var n [4]byte
	for i := range 20_000 {
		d := p.Decide(Input{ID: fmt.Sprint("user-", i)})
		binary.LittleEndian.PutUint32(n[:], d.Point)
		sum.Write(n[:])
		sum.Write([]byte(d.Version.Name()))
	}
	fmt.Fprintf(&b, "%x\n", sum.Sum(nil))
	return b.String()
}

const goldenEnv = "SLUICE_CANARY_GOLDEN"

func TestMain(m *testing.M) {
	if os.Getenv(goldenEnv) != "" {
		fmt.Print(golden())
		return
	}
	os.Exit(m.Run())
}

// Two processes, or one after a restart, decide alike. A hash with a seed of the
// process would pass every other test.
//
// kitex seeds its consistent hash by maphash.MakeSeed(), so that two gateways send one
// user to two nodes; rpcx had the same: https://github.com/rpcxio/rpcx-examples/issues/68.
// SDKs in several languages that disagree: https://github.com/open-feature/flagd/issues/1872,
// https://github.com/growthbook/growthbook-swift/issues/75,
// https://github.com/growthbook/growthbook-flutter/pull/134,
// https://github.com/vercel/flags/pull/427.
func TestComplaint11_ProcessesAndReleasesAgree(t *testing.T) {
	want, err := os.ReadFile("testdata/spec1.golden")
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	for range 2 {
		cmd := exec.CommandContext(t.Context(), exe)
		cmd.Env = append(os.Environ(), goldenEnv+"=1")
		got, err := cmd.Output()
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "the points of users are frozen")
	}
}
