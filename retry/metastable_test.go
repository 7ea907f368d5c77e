package retry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A dependency has 16 workers and can serve 1600 calls a second; 1200 come. For ten
// seconds it has a quarter of its workers. Calls are made up to four times, and nobody
// waits for an attempt longer than 250 ms.
const (
	dipBegins = 20 * sec
	dipEnds   = 30 * sec
)

func sixteen(at int64) int {
	if dipBegins <= at && at < dipEnds {
		return 4
	}
	return 16
}

// E5: for ten seconds a server of 1600 calls a second, of which 1200 come, has a quarter of
// its workers. Without a retry budget the cause goes away and the outage stays: what is
// worked on is what nobody waits for any more, and its repetitions keep it so. With one
// the system comes back, the sooner the smaller it is. A server that drops what nobody
// waits for is back at once; one that bounds what it has in flight does not collapse at
// all, and gives in the dip what a quarter of its workers can. The figures are the
// percentage of calls that succeed, with up to four attempts; – is not simulated any more.
func TestE5_MetastableFailure(t *testing.T) {
	budgetOf := func(ratio, perSecond float64) *Budget {
		return newBudget("payments", BudgetConfig{ratio, perSecond, 10 * time.Second}, t0)
	}
	type band struct{ least, most float64 }
	none := band{0, 0}
	t.Attr("columns", "retries | before | in the dip | 1–10 s after it | 10–30 s | 30–70 s | 130–150 s | attempts for a call")
	for _, c := range []struct {
		name   string
		budget *Budget
		limit  int
		drops  bool
		until  int64 // after the dip
		// Shares of calls that succeed: in the dip; then within 10 s of its end, from 10 to
		// 30 s, from 30 to 70 s, and from 130 to 150 s.
		dip, soon, later, late, atLast band
	}{
		{"no budget", nil, 0, false, 40 * sec, band{0, 0.05}, none, none, band{}, band{}},
		{"20 % and 10/s", budgetOf(0.2, 10), 0, false, 150 * sec, band{0, 0.05}, none, none, band{0, 0.3}, band{1, 1}},
		{"10 % and 1/s", budgetOf(0.1, 1), 0, false, 70 * sec, band{0, 0.05}, none, band{0, 0.1}, band{0.8, 1}, band{}},
		{"10 %, and a server that drops", budgetOf(0.1, 1), 0, true, 30 * sec, band{0, 0.1}, band{0.98, 1}, band{0.999, 1}, band{}, band{}},
		{"10 %, and a server with at most 21 in flight", budgetOf(0.1, 1), 21, false, 30 * sec, band{0.32, 0.36}, band{0.99, 1}, band{0.997, 1}, band{}, band{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := New("payments", WithAttempts(4), WithBudget(c.budget))
			require.NoError(t, err)
			w := &world{workers: sixteen, service: 10e6, limit: c.limit, drops: c.drops, rate: 1200, poisson: true, patience: 250 * ms, policy: p}
			var backlog int
			w.at(dipEnds, func() { backlog = w.queue.len() })
			w.run(dipEnds + c.until)
			cells := []string{c.name}
			within := func(b band, from, to int64, when string) {
				cell := "–"
				if to <= c.until+dipEnds {
					share := w.share(from, to-sec) // whose last attempts have ended
					assert.GreaterOrEqual(t, share, b.least, when)
					assert.LessOrEqual(t, share, b.most, when)
					cell = fmt.Sprintf("%.0f", 100*share)
				}
				cells = append(cells, cell)
			}
			within(band{0.999, 1}, 0, dipBegins, "before")
			within(c.dip, dipBegins+sec, dipEnds, "in the dip")
			within(c.soon, dipEnds+sec, dipEnds+10*sec, "soon after")
			within(c.later, dipEnds+10*sec, dipEnds+30*sec, "10 s later")
			within(c.late, dipEnds+30*sec, dipEnds+70*sec, "30 s later")
			within(c.atLast, dipEnds+130*sec, dipEnds+150*sec, "130 s later")

			load := float64(w.sent) / float64(len(w.good))
			t.Attr("row", strings.Join(append(cells, fmt.Sprintf("%.2f", load)), " | "))
			if c.budget == nil {
				assert.Greater(t, load, 3.0, "three times the load and more")
				assert.Greater(t, w.queue.len(), 2*backlog, "and it gets worse")
			} else {
				assert.LessOrEqual(t, load, 1+c.budget.config.Ratio+0.01)
			}
		})
	}
}

// E6: the law by which a backlog goes away: at C − λ(1+r) a second, and so never if r is as
// large as C/λ − 1, where C is what the server can do, λ what comes, and r the share of
// calls that is repeated. Here C is 1600 and λ 1200 a second, so that is at a third.
func TestE6_DrainLaw(t *testing.T) {
	const capacity, rate = 1600.0, 1200.0
	const patience = 250 * ms
	const begins, ends = 15 * sec, 21 * sec
	ratios := []float64{0, 0.1, 0.4, 0.05, 0.2, 0.3}
	ratios = ratios[:3+rounds(3)-rounds(3)%3]
	slices.Sort(ratios)
	t.Attr("columns", "r | repeated | backlog after the dip | gone after, s | by the law, s")
	for _, r := range ratios {
		p, err := New("payments", WithAttempts(4), WithBudget(newBudget("payments", BudgetConfig{r, 0, 10 * time.Second}, t0)))
		require.NoError(t, err)
		w := &world{
			workers: func(at int64) int {
				if begins <= at && at < ends {
					return 4
				}
				return 16
			},
			service: 10e6, rate: rate, patience: patience, policy: p,
		}
		var sent, calls int64
		var backlog int
		w.at(ends, func() { sent, calls, backlog = w.sent, int64(len(w.good)), w.queue.len() })
		if r > capacity/rate-1 {
			w.run(ends + 60*sec)
			assert.Zerof(t, w.share(ends+sec, ends+60*sec), "at %v it never comes back", r)
			assert.Greater(t, w.queue.len(), backlog+1000, "and the backlog grows")
			t.Attr("row", fmt.Sprintf("%v | %.2f | %d | never | never", r, float64(w.sent-sent)/float64(int64(len(w.good))-calls)-1, backlog))
			continue
		}
		var back int64
		w.until = func(number int) bool { // the first call after the dip that succeeds
			if w.began[number] < t0+ends {
				return false
			}
			back = w.now - t0 - ends
			return true
		}
		w.run(ends + 200*sec)
		// It is what the calls of that time were repeated: a few per cent less than r, since
		// the budget counts in slots, and not evenly, since the dip has used it up.
		repeated := float64(w.sent-sent)/float64(int64(len(w.good))-calls) - 1
		want := (float64(backlog) - capacity*float64(patience)/float64(sec)) / (capacity - rate*(1+repeated))
		assert.InEpsilonf(t, want, float64(back)/float64(sec), 0.1, "at %v", r)
		t.Attr("row", fmt.Sprintf("%v | %.2f | %d | %.0f | %.0f", r, repeated, backlog, float64(back)/float64(sec), want))
	}
}
