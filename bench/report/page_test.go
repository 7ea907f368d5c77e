package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// results is a run on a machine just like the reference.
const results = `cpu: Some Processor
BenchmarkBreakerClosed/sluice/serial-2 100 60 ns/op 0 B/op 0 allocs/op
BenchmarkBreakerClosed/sluice/parallel-2 100 45 ns/op 110 pingpong-ns 0 B/op 0 allocs/op
BenchmarkBreakerClosed/slow/serial-2 100 240 ns/op 0 B/op 0 allocs/op
BenchmarkBreakerClosed/slow/parallel-2 100 480 ns/op 130 pingpong-ns 0 B/op 0 allocs/op
BenchmarkBreakerClosed/quick/serial-2 100 120 ns/op 48 B/op 1 allocs/op
BenchmarkBreakerClosed/quick/parallel-2 100 120 ns/op 120 pingpong-ns 48 B/op 1 allocs/op
BenchmarkFloor/clock/serial-2 100 24 ns/op 0 B/op 0 allocs/op
BenchmarkFloor/clock/parallel-2 100 12 ns/op 120 pingpong-ns 0 B/op 0 allocs/op
BenchmarkFloor/atomic/serial-2 100 5 ns/op 0 B/op 0 allocs/op
BenchmarkIdleBreakers/sluice-2 1 6.5 MiB 0 goroutines
`

func written(t *testing.T, texts ...string) string {
	t.Helper()
	var all rounds
	for _, text := range texts {
		r, err := parse(strings.NewReader(text))
		require.NoError(t, err)
		all = append(all, r)
	}
	var page strings.Builder
	require.NoError(t, write(&page, place{CPU: all[0].cpu, Cores: 2, Rounds: len(all)}, all))
	return page.String()
}

func TestPage_SaysWhatIsMetAndWhatIsNot(t *testing.T) {
	page := written(t, results)
	for _, line := range []string{
		"| Machine | Some Processor, 2 cores |",
		// Two readings of the clock and 12 ns, where 14 are allowed.
		"| closed, three rules: Allow + Done | 60 | 2 + 12 | 2 + 14 | 62 | 0.97 | met | 62 | met |",
		"| closed, three rules: Allow + Done | 0.75 | 0.65 | **not met**, 15.4 % over | 110 |",
		"* two goroutines, closed, three rules: Allow + Done",
		"* ns, open: a call refused and counted", // among those not measured
		"| 10 000 idle breakers: MiB | 6.50 | 9 | met |",
		"| clock | 24 | 12 | 0.50 | 120 |",
		// Beside the quicker of the peers.
		"| sluice | 60 | 45 | 0.75 | 0 | 0 | 2 + 12 | 0.50 | 110 |",
		"| slow | 240 | 480 | 2 | 0 | 0 | × 10 | 2 | 130 |",
		"| quick | 120 | 120 | 1 | 1 | 48 | × 5 | 1 | 120 |",
		"In these rounds it was 120 (110–130) ns.",
	} {
		assert.Contains(t, page, line+"\n")
	}
	assert.NotContains(t, page, "busy")
}

func TestPage_SaysThatTheMachineWasBusy(t *testing.T) {
	slowClock := strings.ReplaceAll(results, "clock/serial-2 100 24 ", "clock/serial-2 100 40 ")
	slowLine := strings.ReplaceAll(results, " 120 pingpong-ns", " 81000 pingpong-ns")
	assert.Contains(t, written(t, results, slowClock), "The machine was busy")
	assert.Contains(t, written(t, results, slowLine), "The machine was busy")
	assert.NotContains(t, written(t, results, results), "The machine was busy")
}
