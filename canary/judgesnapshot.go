package canary

import "github.com/sluicego/sluice/internal/clock"

// JudgeSnapshot is what a Judge looks like at one moment, as plain data.
type JudgeSnapshot struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Strays counts results that belong to no step: they came in two steps late, or before
	// the first, or while nobody knew what the shares were.
	Strays int64       `json:"strays"`
	Config JudgeConfig `json:"config"`
}

// Snapshot returns what the Judge looks like now. It asks for the Verdict.
func (j *Judge) Snapshot() JudgeSnapshot {
	if j == nil {
		return JudgeSnapshot{}
	}
	return JudgeSnapshot{j.name, j.verdict(clock.Now()), j.strays.Load(), j.Config()}
}
