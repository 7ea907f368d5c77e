package retry

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// budgetModel keeps every event and counts by looking. It says both what the budget
// must answer, slot by slot, and what it must never do, whatever its slots.
type budgetModel struct {
	config      BudgetConfig
	made        []int64 // when each call was made …
	dated       []int64 // … and from when it counts, which may be sooner
	withdrawals []int64
	now         int64
}

// within counts the times in (from, to]; they are in order.
func within(times []int64, from, to int64) (n int) {
	for i := len(times) - 1; i >= 0 && times[i] > from; i-- {
		if times[i] <= to {
			n++
		}
	}
	return n
}

// allowed is the sum in the type comment of Budget.
func (m *budgetModel) allowed(calls int) float64 {
	return m.config.MinPerSecond*m.config.Window.Seconds() + m.config.Ratio*float64(calls) + 1e-6
}

// answers is what withdraw must answer: a whole window of withdrawals and at most one
// more slot of them, at most one window of calls.
func (m *budgetModel) answers() bool {
	width := m.config.width()
	slot := m.now / width * width
	calls := within(m.dated, slot-(slots-1)*width-1, m.now)
	return float64(within(m.withdrawals, slot-slots*width-1, m.now)+1) <= m.allowed(calls)
}

// exact reports whether the promise holds for the latest withdrawal.
func (m *budgetModel) exact() bool {
	window := int64(m.config.Window)
	return float64(within(m.withdrawals, m.now-window, m.now)) <= m.allowed(within(m.made, m.now-window, m.now))
}

// walkBudget drives a budget and the model by random bytes: a gap in time, and what happens
// after it.
func walkBudget(t *testing.T, c BudgetConfig, moves []byte) {
	b := newBudget("payments", c, t0)
	m := budgetModel{config: c, now: t0}
	for i := 0; i+1 < len(moves); i += 2 {
		gap := int64(math.Pow(1.11, float64(moves[i]))) * ms / 100 // from 10 µs to some weeks
		if moves[i] < 100 {
			gap = 0
		}
		m.now += gap
		n := int(moves[i+1] % 64)
		switch moves[i+1] / 64 {
		case 0, 1:
			for range n {
				m.made, m.dated = append(m.made, m.now), append(m.dated, b.last)
				b.deposit(m.now)
			}
		case 2:
			for range min(n, 12) {
				want := m.answers()
				got := b.withdraw(m.now)
				require.Equalf(t, want, got, "move %d, %v after t0", i, time.Duration(m.now-t0))
				if got {
					m.withdrawals = append(m.withdrawals, m.now)
					require.Truef(t, m.exact(), "move %d, %v after t0: more than was promised", i, time.Duration(m.now-t0))
				}
			}
		case 3:
			if last := len(m.withdrawals) - 1; n%4 == 0 && last >= 0 {
				b.giveBack(m.withdrawals[last])
				m.withdrawals = m.withdrawals[:last]
			}
		}
	}
	require.Equal(t, uint64(len(m.made)), b.snapshot(m.now).Deposits)
}

var modelConfigs = []BudgetConfig{
	DefaultBudgetConfig(),
	{Ratio: 0.5, Window: time.Second},
	{Ratio: 0.000001, MinPerSecond: 3, Window: 100 * time.Millisecond},
	{Ratio: 1, MinPerSecond: 0.3, Window: time.Minute},
}

func TestBudgetModel(t *testing.T) {
	for seed := range uint64(rounds(200)) {
		r := rand.New(rand.NewPCG(seed, 1))
		moves := make([]byte, 400)
		for i := range moves {
			moves[i] = byte(r.UintN(256))
			if i%2 == 0 { // mostly gaps that matter
				moves[i] = byte(80 + r.UintN(90))
			}
		}
		walkBudget(t, modelConfigs[seed%uint64(len(modelConfigs))], moves)
	}
}

func FuzzBudget(f *testing.F) {
	f.Add(uint8(0), []byte{0, 63, 0, 191, 150, 191, 140, 63, 150, 180})
	f.Add(uint8(3), []byte{0, 191, 0, 196, 0, 191, 200, 63, 100, 191})
	f.Fuzz(func(t *testing.T, config uint8, moves []byte) {
		walkBudget(t, modelConfigs[int(config)%len(modelConfigs)], moves[:min(len(moves), 600)])
	})
}

// rounds is how many of n rounds are run: all, or a part with -short.
func rounds(n int) int {
	if testing.Short() {
		return max(n/8, 1)
	}
	return n
}

// A ledger of another width holds the same, and nothing that was not allowed before is
// allowed by it.
func TestLedger_ReshapedAllowsNoMore(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range rounds(2000) {
		old := ledger{width: 1 + r.Int64N(1000)}
		now := r.Int64N(50_000)
		for range 60 {
			old.roll(now)
			old.deposit(now-r.Int64N((slots+1)*old.width), r.Uint64N(5))
			old.withdraw(now-r.Int64N((slots+1)*old.width), r.Uint64N(5))
			now += r.Int64N(3 * old.width)
		}
		old.roll(now)
		next := old.reshaped(1+r.Int64N(1000), now)
		deposited, withdrawn := old.sums()
		d, w := next.sums()
		assert.LessOrEqual(t, d, deposited)
		if next.width >= old.width {
			assert.Equal(t, withdrawn, w, "a longer window forgets none")
		}
		// What is left stays no shorter, for withdrawals, and no longer, for deposits.
		if same := old.reshaped(old.width, now); assert.Equal(t, old.newest, same.newest) {
			sd, sw := same.sums()
			assert.Equal(t, deposited, sd)
			assert.Equal(t, withdrawn, sw)
		}
	}
}
