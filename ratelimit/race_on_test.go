//go:build race

package ratelimit

// raceEnabled cuts down what is all arithmetic, and has nothing to race.
const raceEnabled = true
