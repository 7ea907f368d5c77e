package canary

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnchors(t *testing.T) {
	want := []uint32{0, 500_000, 250_000, 750_000, 125_000, 625_000, 375_000, 875_000}
	for lane := range MaxLanes {
		assert.Equal(t, want[lane/2], anchor(lane), "lane %d", lane)
	}
}

func TestLayOut(t *testing.T) {
	type owned struct {
		from, to uint32
		owner    int
	}
	for name, c := range map[string]struct {
		claims []claim
		want   []owned
	}{
		"nobody": {nil, []owned{{0, 1_000_000, -1}}},
		"one, upwards from 0": {
			[]claim{{0, 0, 100_000}}, []owned{{0, 100_000, 0}, {100_000, 1_000_000, -1}},
		},
		"two meet in the middle": {
			[]claim{{0, 0, 600_000}, {1, 1, 400_000}}, []owned{{0, 600_000, 0}, {600_000, 1_000_000, 1}},
		},
		"four, apart": {
			[]claim{{0, 0, 100_000}, {1, 1, 50_000}, {2, 2, 70_000}, {3, 3, 80_000}},
			[]owned{
				{0, 100_000, 0}, {100_000, 420_000, -1}, {420_000, 500_000, 3},
				{500_000, 570_000, 2}, {570_000, 950_000, -1}, {950_000, 1_000_000, 1},
			},
		},
		"lane 2 goes on behind lane 0": {
			[]claim{{0, 0, 600_000}, {1, 2, 100_000}}, []owned{{0, 600_000, 0}, {600_000, 700_000, 1}, {700_000, 1_000_000, -1}},
		},
		"lane 2 goes on behind lane 1, around the top": {
			[]claim{{0, 1, 400_000}, {1, 2, 300_000}},
			[]owned{{0, 200_000, 1}, {200_000, 500_000, -1}, {500_000, 600_000, 1}, {600_000, 1_000_000, 0}},
		},
		"lane 3 goes on below 0": {
			[]claim{{0, 0, 400_000}, {1, 3, 300_000}},
			[]owned{{0, 400_000, 0}, {400_000, 500_000, 1}, {500_000, 800_000, -1}, {800_000, 1_000_000, 1}},
		},
		"all of it": {[]claim{{0, 5, 1_000_000}}, []owned{{0, 250_000, 0}, {250_000, 1_000_000, 0}}},
		"too much":  {[]claim{{0, 0, 900_000}, {1, 0, 200_000}}, []owned{{0, 900_000, 0}, {900_000, 1_000_000, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []owned
			for _, s := range layOut(c.claims) {
				got = append(got, owned{s.from, s.to, s.owner})
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// FuzzLayOut compares the layout with one that gives away a thousand points one by one.
func FuzzLayOut(f *testing.F) {
	f.Add([]byte{0, 100, 1, 50, 2, 200, 3, 200})
	f.Add([]byte{2, 255, 3, 255, 4, 255, 5, 120, 15, 100})
	f.Fuzz(func(t *testing.T, in []byte) {
		const grain = points / 1000
		var claims []claim
		var owner, offset [1000]int
		for i := range owner {
			owner[i] = -1
		}
		used, left := map[int]bool{}, 1000
		for i := 0; i+1 < len(in); i += 2 {
			lane, size := int(in[i]%MaxLanes), min(2*int(in[i+1]), left)
			if used[lane] {
				continue
			}
			used[lane] = true
			left -= size
			claims = append(claims, claim{len(claims), lane, uint32(size) * grain})
			step, at := 1, int(anchor(lane)/grain)
			if lane%2 == 1 {
				step, at = -1, at-1
			}
			for n := 0; n < size; at += step {
				at = (at + 1000) % 1000
				if owner[at] < 0 {
					owner[at], offset[at] = len(claims)-1, n
					n++
				}
			}
		}
		at := uint32(0)
		for _, s := range layOut(claims) {
			require.Equal(t, at, s.from, "no gap")
			require.Less(t, s.from, s.to, "not empty")
			at = s.to
			for p := s.from; p < s.to; p += grain {
				require.Equal(t, owner[p/grain], s.owner, "point %d of %v", p, claims)
				if s.owner >= 0 {
					distance := s.offset + p - s.from
					if s.down {
						distance = s.offset + s.to - grain - p
					}
					require.Equal(t, offset[p/grain], int(distance/grain), "distance of point %d of %v", p, claims)
				}
			}
		}
		require.Equal(t, points, at)
	})
}
