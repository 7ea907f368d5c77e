package storetest_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/ratelimit"
	"github.com/sluicego/sluice/ratelimit/storetest"
)

// A memoryStore can lose its keys, by being another one.
type memoryStore struct{ ratelimit.Store }

func (s *memoryStore) lose() {
	m, err := ratelimit.NewMemoryStore(1 << 16)
	if err != nil {
		panic(err)
	}
	s.Store = m
}

func TestMemoryStore(t *testing.T) {
	storetest.RunInBubble(t, func(t *testing.T) storetest.Subject {
		s := new(memoryStore)
		s.lose()
		return storetest.Subject{Store: s, Lose: s.lose}
	})
}

func TestPlainStore(t *testing.T) {
	storetest.RunInBubble(t, func(t *testing.T) storetest.Subject { return newPlainStore("").subject() })
}

// Outside of a bubble, with a clock that the test moves.
func TestRun_WithAPassOfTheSubjectsOwn(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		s := newPlainStore("").subject()
		s.Pass, s.Slow = s.Step, nil
		return s
	})
}

// A check that no flaw shows could be one that cannot fail.
func TestChecks_EachCatchesItsFlaw(t *testing.T) {
	flaws := map[string]string{
		"StartsFull":                "unknown keys are empty",
		"AllOrNothing":              "grants a part",
		"LookingTakesNothing":       "charges for looking",
		"ChargesWhatItGrants":       "charges fractions",
		"SaysWhenItIsFull":          "resets with a token",
		"RetryAfterHolds":           "rounds waits down",
		"KeepsTheRate":              "refills twice",
		"LosesNothing":              "drops fractions",
		"CountsFast":                "counts in whole nanoseconds",
		"Atomic":                    "looks, then takes",
		"Reserves":                  "charges no reservations",
		"RefusesNonsense":           "takes nonsense",
		"ForgetsNoSoonerThanFull":   "rounds expiries down",
		"RefillsAtOnceAfterSetBack": "waits for its clock",
		"FullAtMostAfterSetForward": "knows no brim",
		"LostKeysAreFull":           "unknown keys are empty",
		"RefundsAtOnce":             "refunds nothing",
		"RefundsWhatIsStillMissing": "refunds all",
		"RefundsNoneTwice":          "forgets other refunds",
		"RefundsReservations":       "refunds no debt",
		"RefundsNotToLostKeys":      "refunds to lost keys",
		"DebitsBelowEmpty":          "stops debits at 0",
		"KeysAreApart":              "joins names",
		"AnotherQuotaKeepsTheLevel": "begins anew with a quota",
		"CountsNodes":               "hears no goodbye",
		"ForgetsSilentNodes":        "forgets no node",
		"EndedContext":              "ignores ctx",
		"GivesUpInTime":             "waits for an answer",
		"TakesAtMostOnce":           "tries again",
		"DeadStoreSaysSo":           "a dead store is silent",
	}
	for _, c := range storetest.Checks() {
		t.Run(c.Name, func(t *testing.T) {
			require.Contains(t, flaws, c.Name, "no flaw shows that it can fail")
			synctest.Test(t, func(t *testing.T) {
				err := c.Run(newPlainStore(flaws[c.Name]).subject(), true)
				var failure *storetest.Failure
				require.ErrorAs(t, err, &failure)
				assert.Contains(t, failure.Error(), c.Rule)
				assert.Contains(t, failure.Error(), c.Name)
				t.Log(err)
			})
		})
		delete(flaws, c.Name)
	}
	assert.Empty(t, flaws, "there are no such checks")
}

func TestCheck_SaysWhatTheSubjectLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		skipped := 0
		for _, c := range storetest.Checks() {
			if err := c.Run(storetest.Subject{Store: newPlainStore("")}, true); errors.Is(err, storetest.ErrDoesNotApply) {
				skipped++
				assert.Contains(t, err.Error(), "storetest: "+c.Name+": does not apply: the Subject has no ")
			}
		}
		assert.Equal(t, 7, skipped)
	})
}

func TestCheck_APanicIsAFailure(t *testing.T) {
	err := storetest.Checks()[0].Run(storetest.Subject{}, true)
	var failure *storetest.Failure
	require.ErrorAs(t, err, &failure)
	assert.Contains(t, failure.Seen[0], "it panics: runtime error: invalid memory address")
}
