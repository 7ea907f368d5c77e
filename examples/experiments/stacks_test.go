package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/adaptive"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/retry"
)

// A stack is what a client or the server puts around a call.
type stack []func(*world)

func (s stack) build(w *world) {
	for _, add := range s {
		add(w)
	}
}

// What a stack may have. Nothing in it is left to chance, as the default rule of a
// Limiter does when it looks for a new baseline.
func retries(opts ...retry.Option) func(*world) {
	opts = append([]retry.Option{retry.WithAttempts(4), retry.WithJitter(0)}, opts...)
	return func(w *world) { w.policy = sluice.Must(retry.New("shop", opts...)) }
}

var unbounded = retries(retry.WithBudget(nil))

func breaking(opts ...breaker.Option) func(*world) {
	opts = append([]breaker.Option{breaker.WithJitter(0)}, opts...)
	return func(w *world) { w.breaker = sluice.Must(breaker.New("shop", opts...)) }
}

func limited(w *world) {
	w.limiter = sluice.Must(adaptive.NewLimiter("shop", adaptive.WithLimitRule(adaptive.AIMD(50*time.Millisecond))))
}

// refusalsFail is the mistake: an answer that the server wants less counts as a failure.
var refusalsFail = breaking(breaker.WithClassifier(func(ctx context.Context, err error) (v breaker.Verdict) {
	if err == errBusy {
		v.Outcome = sluice.Failure
	}
	return v
}))

// crew is a server that has fewer workers for some time.
func crew(from, to time.Duration, left int) func(time.Duration) int {
	return func(since time.Duration) int {
		if from <= since && since < to {
			return left
		}
		return fullCrew
	}
}

type band struct{ least, most float64 } // percent

func (b band) check(t *testing.T, share float64, when string) string {
	t.Helper()
	percent := 100 * share
	assert.Truef(t, b.least <= percent && percent <= b.most, "%s: %.2f %% is not in [%v, %v]", when, percent, b.least, b.most)
	return fmt.Sprintf(" | %.0f", percent)
}

// E5: a server of 400 calls a second, of which 300 come, has a quarter of its workers for
// ten seconds; clients make up to four attempts and wait 250 ms for each. With retries
// alone the cause goes away and the outage stays. A budget brings the service back in the
// course of half a minute, a breaker as soon as it is tried again, and both need the
// outage to end first. A limiter in the server keeps most of what is left of it in use,
// and then there is nothing to come back from; a breaker beside it does no harm, for what
// wants less is not down. The figures are the percentage of calls that succeed.
func TestE5_Stacks(t *testing.T) {
	const begins, ends, over = 20 * time.Second, 30 * time.Second, 100 * time.Second
	t.Attr("columns", "guards | before | in the dip | 1–10 s after it | 10–30 s | 30–70 s | attempts for a call")
	none, all := band{0, 0.1}, band{99, 100}
	for _, c := range []struct {
		name                    string
		stack                   stack
		dip, soon, later, atEnd band
	}{
		{"retries", stack{unbounded}, none, none, none, none},
		{"retries with a budget", stack{retries()}, none, none, band{0, 5}, band{80, 95}},
		{"retries, breaker", stack{unbounded, breaking()}, none, band{10, 40}, all, all},
		{"retries with a budget, breaker", stack{retries(), breaking()}, none, band{0, 40}, all, all},
		{"retries with a budget; limiter in the server", stack{retries(), limited}, band{22, 28}, all, all, all},
		{"retries with a budget, breaker; limiter in the server", stack{retries(), breaking(), limited}, band{22, 28}, all, all, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := &world{workers: crew(begins, ends, 1)}
			w.live(t, over+time.Second, c.stack.build)
			cells := c.name +
				all.check(t, w.share(0, begins), "before") +
				c.dip.check(t, w.share(begins+time.Second, ends), "in the dip") +
				c.soon.check(t, w.share(ends+time.Second, ends+10*time.Second), "soon after") +
				c.later.check(t, w.share(ends+10*time.Second, ends+30*time.Second), "10 s later") +
				c.atEnd.check(t, w.share(ends+30*time.Second, over), "30 s later")
			t.Attr("row", fmt.Sprintf("%s | %.2f", cells, float64(w.sent)/float64(len(w.calls))))
		})
	}
}

// E13: for a minute, a server of 400 calls a second, of which 300 come, has a quarter of
// its workers; calls are made once. A third of them is what can be served, and a limiter
// in the server does it. A breaker is the wrong tool for a loss of a part: each time that
// it tries, it closes, and what comes then is too much again; and the longer that goes
// on, the later it tries. One that takes the limiter's refusals for failures does that to
// a server which is well. The figures are the percentage of calls that succeed.
func TestE13_BreakerOrLimiter(t *testing.T) {
	const begins, ends, over = 10 * time.Second, 70 * time.Second, 150 * time.Second
	t.Attr("columns", "guards | before | in the brownout | 1–20 s after it | 60–80 s")
	all, third := band{98, 100}, band{29, 34}
	for _, c := range []struct {
		name             string
		stack            stack
		dip, soon, atEnd band
	}{
		{"none", nil, band{0, 0.1}, band{0, 0.1}, band{0, 0.1}},
		{"breaker", stack{breaking()}, band{0, 5}, band{0, 5}, all},
		{"limiter in the server", stack{limited}, third, all, all},
		{"limiter in the server, breaker", stack{limited, breaking()}, third, all, all},
		{"limiter in the server, breaker that counts refusals as failures", stack{limited, refusalsFail}, band{0, 5}, band{0, 5}, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := &world{workers: crew(begins, ends, 1)}
			w.live(t, over+time.Second, c.stack.build)
			t.Attr("row", c.name+
				all.check(t, w.share(0, begins), "before")+
				c.dip.check(t, w.share(begins+time.Second, ends), "in the brownout")+
				c.soon.check(t, w.share(ends+time.Second, ends+20*time.Second), "soon after")+
				c.atEnd.check(t, w.share(ends+60*time.Second, over), "a minute later"))
		})
	}
}
