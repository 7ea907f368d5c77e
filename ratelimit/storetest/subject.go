package storetest

import (
	"time"

	"github.com/sluicego/sluice/ratelimit"
)

// A Subject is a store and what can be done to it. Only Store must be set.
type Subject struct {
	Store ratelimit.Store
	// Pass lets the time d pass for the store, all its clocks and expiries together.
	// If nil, it is time.Sleep.
	Pass func(d time.Duration)
	// Step sets the store's clock forward by d, or back if d is negative, as an
	// operator does, or a replica that takes over and whose clock is off.
	Step func(d time.Duration)
	// Lose makes the store lose all keys at once.
	Lose func()
	// Slow makes every answer take d longer from now on; 0 is as before.
	Slow func(d time.Duration)
	// Die makes the store unreachable until Revive; what it held it may lose. Both or
	// neither must be set.
	Die, Revive func()
}
