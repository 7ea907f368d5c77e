// Package hashes has the ways in which feature-flag services turn an identity into a
// place between nobody and everybody, so that a rollout can move to a canary.Picker
// and back while everyone keeps what they have.
//
// Each is a function of a salt and an id that canary.WithHash takes; what is the salt
// is said at each:
//
//	canary.New("checkout", "v1",
//		canary.WithHash(hashes.LaunchDarkly),
//		canary.WithSalt("checkout-flag.4b9a"), // the flag's key, a dot and its salt
//		canary.WithVersion("v2", 0, canary.Percent(20)))
//
// A version in lane 0 then has the users that the service gives to the first
// variation of that share. Their finest step is coarser than ours: weights in between
// move nobody until the next step, which is said at each function. Where a canary.Judge
// compares versions, take whole steps only: it goes by the weights.
//
// For a new rollout take none of them. The hash of package canary has a finer step and
// keeps salts apart, which GrowthBook 1 does not, and it allocates nothing. These
// functions allocate, if at all, the text that the service hashes. They are pure, and
// safe for concurrent use.
package hashes
