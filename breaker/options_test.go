package breaker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluicego/sluice"
)

// An option was read where another was meant: the least number of requests was
// taken for the percentage (https://github.com/slok/goresilience/pull/26). Each
// option alone makes the difference that it promises.
func TestT32_EachOptionAloneChangesWhatItPromises(t *testing.T) {
	state := func(steps ...step) func(*story) any {
		return func(s *story) any {
			for _, step := range steps {
				s.now, s.where = at(step.at), fmt.Sprintf("at %v", step.at)
				step.do(s)
			}
			return s.b.state(s.now)
		}
	}
	try := func(s *story) { // admitted or not, it succeeds if it is
		if p, err := s.b.allow(t.Context(), s.now); err == nil {
			p.done(s.now, nil)
		}
	}
	slow := took(time.Second+1, nil)
	errAnswer := errors.New("no rows")
	answer := func(s *story) { s.admit(t.Context()).done(s.now, errAnswer) }
	var heard int
	var log bytes.Buffer
	opened := func(s *story) any { F(s); return s.last().OpenFor }
	count := WithErrorCount(1)
	for _, c := range []struct {
		name          string
		base          []Option
		option        Option
		play          func(*story) any
		without, with any
	}{
		{"WithSlowCallRatio", nil, WithSlowCallRatio(time.Second, 0.5), state(step{0, slow, 0}), Closed, Open},
		{"WithErrorRatio", nil, WithErrorRatio(0.9), state(step{0, S, 0}, step{0, F, 0}), Open, Closed},
		{"WithErrorCount", nil, WithErrorCount(2), state(step{0, F, 0}), Open, Closed},
		{"WithConsecutiveFailures", nil, WithConsecutiveFailures(3), state(step{0, F, 0}), Open, Closed},
		{"MinRequests", []Option{WithSlowCallRatio(time.Second, 0.5)}, WithErrorRatio(0.5, MinRequests(2)), state(step{0, S, 0}, step{0, F, 0}), Closed, Open},
		{"Over", []Option{WithErrorCount(2)}, WithErrorCount(2, Over(time.Minute)), state(step{0, F, 0}, step{30, F, 0}), Closed, Open},
		{"OpenFor", nil, WithErrorCount(1, OpenFor(7*time.Second)), opened, 5 * time.Second, 7 * time.Second},
		{"WithWindow", []Option{WithErrorCount(2)}, WithWindow(time.Minute, 6), state(step{0, F, 0}, step{30, F, 0}), Closed, Open},
		{"WithCountWindow", []Option{WithErrorCount(2)}, WithCountWindow(10), state(step{0, F, 0}, step{30, F, 0}), Closed, Open},
		{"WithMinRequests", nil, WithMinRequests(2), state(step{0, F, 0}), Open, Closed},
		{"WithConfidence", nil, WithConfidence(1.645), state(step{0, F, 0}), Open, Closed},
		{"WithOpenFor", []Option{count}, WithOpenFor(9 * time.Second), opened, 5 * time.Second, 9 * time.Second},
		{"WithBackoff", []Option{count}, WithBackoff(3, time.Hour), func(s *story) any {
			s.tell(step{0, F, Open}, step{5, F, Open})
			return s.last().OpenFor
		}, 10 * time.Second, 15 * time.Second},
		{"WithJitter", []Option{count}, WithJitter(0.5), func(s *story) any {
			distinct := map[time.Duration]bool{}
			for range 20 {
				s.tell(step{0, F, Open}, step{0, reset, Closed})
				distinct[s.events[len(s.events)-2].OpenFor] = true
			}
			return len(distinct) > 1
		}, false, true},
		{"WithProbes", []Option{count}, WithProbes(2), state(step{0, F, 0}, step{5, S, 0}), Closed, HalfOpen},
		{"WithProbeTolerance", []Option{count, WithProbes(2)}, WithProbeTolerance(0.5), state(step{0, F, 0}, step{5, F, 0}), Open, HalfOpen},
		{"WithProbeLease", []Option{count}, WithProbeLease(time.Second), state(step{0, F, 0}, step{5, A("hung"), 0}, step{6.5, try, 0}), HalfOpen, Open},
		{"WithProbeBudget", []Option{count}, WithProbeBudget(&meanBudget{}), state(step{0, F, 0}, step{5, try, 0}), Closed, HalfOpen},
		{"WithRecovery", []Option{count}, WithRecovery(Step{0.5, time.Minute}), func(s *story) any {
			s.tell(step{0, F, Open}, step{5, S, Closed})
			return admitted(s, 6, 7, 10)
		}, 10, 5},
		{"WithInFlightSlow", []Option{WithSlowCallRatio(time.Second, 0.5)}, WithInFlightSlow(), state(step{0, A("hung"), 0}, step{2, try, 0}), Closed, Open},
		{"WithClassifier", nil, WithClassifier(func(_ context.Context, err error) Verdict { return Verdict{Outcome: sluice.Success} }), state(step{0, F, 0}), Open, Closed},
		{"WithSuccessErrors", nil, WithSuccessErrors(errAnswer), state(step{0, answer, 0}), Open, Closed},
		{"WithMinBudget", nil, WithMinBudget(time.Second), state(step{0, late(time.Second - 1), 0}), Open, Closed},
		{"WithOnChange", nil, WithOnChange(func(Event) { heard++ }), func(s *story) any { F(s); return heard }, 0, 1},
		{"WithLogger", nil, WithLogger(slog.New(slog.NewTextHandler(&log, nil))), func(s *story) any { F(s); return log.Len() > 0 }, false, true},
		{"WithConfig", nil, WithConfig(DefaultConfig()), state(step{0, F, 0}), Open, Closed}, // its gate is 20
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.without, c.play(newStory(t, c.base...)), "without")
			assert.Equal(t, c.with, c.play(newStory(t, append(c.base, c.option)...)), "with")
		})
	}
}

// meanBudget never lets a probe go.
type meanBudget struct{}

func (*meanBudget) Take(string, time.Duration) (uint64, bool) { return 0, false }

func (*meanBudget) Settle(string, uint64, sluice.Outcome) {}
