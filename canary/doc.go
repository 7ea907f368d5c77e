// Package canary decides which version of a service serves a request: a stable one,
// and others that get a share of the users each, which grows, or goes at once when they
// do not do well.
//
//	p, err := canary.New("checkout", "v1", canary.WithVersion("v2", 0, canary.Percent(5)))
//	…
//	d := p.Decide(canary.Input{ID: userID})
//	d.Version.Enter()
//	defer d.Version.Leave()
//	serve(d.Version.Name(), r)
//	…
//	err = p.SetWeights(map[string]canary.Weight{"v2": canary.Percent(20)})
//	err = p.Rollback("v2", "errors above 2 %")
//
// # The picture
//
// The hash of an identity is a point, one of a million. Every version beside the
// stable one has a lane: an anchor among the points and a direction. It owns as many
// points from there on as its weight says, and the stable version owns the rest.
//
//	lane 0 ──►                    ◄── lane 3│lane 2 ──►                  ◄── lane 1
//	├──────────┬────────────────────┬───────┼───────────┬────────────────┬───────┤
//	│    v2    │       stable       │  v5   │    v4     │     stable     │  v3   │
//	├──────────┴────────────────────┴───────┴───────────┴────────────────┴───────┤
//	0                                    500 000                          1 000 000
//
// A weight that grows moves one end of one interval: who was in stays in, who comes in
// comes from the stable version, and when it shrinks again the same ones leave. The
// layout depends on lanes and weights alone, so replicas that have the same agree
// without a word, whatever came before. In detail, with weights in ppm:
//
//   - Exact: a weight is that share of the points. 0 is nobody, not one of them.
//   - Minimal: a version loses what its weight shrinks by and gains what it grows by.
//   - Monotone: while no weight shrinks, nobody leaves a version but the stable one.
//   - Reversible: the weights that were bring back who was where.
//   - Stable: the same in every process, after every restart, in every release. The
//     hash and the layout are frozen (HashPoint has the formula).
//   - Independent: rollouts with different salts choose different users first.
//
// Two versions in lanes 0 and 1 never meet. From the third on one may grow so far that
// it reaches another's points (lanes that point at one another have half of all
// between them); then it goes on behind these, and more moves than has to: Preview
// says how much. Lanes 4 to 15 begin at quarters and eighths. A version keeps its lane
// for life, and its place in the list means nothing.
//
// # Why it is no ring
//
// It is consistent in what it promises; a ring of hashed points is a way to get
// there that suits instances, which come and go and are all worth the same. It does
// not suit versions with weights, since its arcs have random lengths: with 1 024 points
// in all, as ketama has for a few nodes, a canary of 1 % gets anything from 0.50 % to
// 2.36 %, and with 100 points from 0.02 % to 3.28 %; going from 10 % to 20 % moves
// 11.2 % of the users instead of 10. Intervals are exact, take a scan of a few words
// instead of a search in kilobytes, and are what a person can check by eye.
//
// Nor is it the hash modulo the sum of the weights, as in many proxies: there a change
// of the sum deals all cards anew.
//
// # Which type
//
//   - Picker decides: Decide for requests, Pick for an id alone.
//   - Group has a Picker for each route; routes without a rule pass untouched.
//   - Identifier finds out who a request is from, and issues ids.
//   - Tokens are signed leave for a tester to choose a version.
//   - Judge compares a version with the stable one, and says whether it is worse.
//   - Controller raises a weight step by step as the Judge agrees, and rolls back.
//   - Schedule raises a weight by the clock alone.
//   - Upstreams chooses an instance within a version, by a hash of its own.
//
// # Who may choose a version
//
// Nobody from outside: an override counts only if the caller has checked who asks
// (Input.Authorized) or a token of ours says so. An adapter must strip the headers that
// set it from requests of strangers. What cannot be granted, since the version is gone
// or was rolled back, is counted and ignored; no wish makes a request fail.
//
// A client keeps an identity and not a version: where the version is in the cookie,
// everyone who has met the canary once stays in it, and 10 % become 65 % after ten
// requests. Where a stored version is wanted all the same, Input.Sticky is for it.
//
// The share of users is exact; the share of requests is not, since users differ: one
// busy user in a canary of 1 % may be a fifth of its requests.
//
// # Concurrency properties
//
// All that picks look at is one immutable table behind one pointer. A pick loads it
// once, takes no lock and allocates nothing. A change builds another table under a
// mutex that no pick takes, and stores the pointer; when SetWeights or Rollback has
// returned, no pick that begins goes by the old one, and one that is under way may.
// A retry should ask again. Generations only grow.
//
// Listeners are called with no lock held, in order, one at a time, by the goroutine
// that made the change. WithTargeting, WithHash and the lookups of an Identifier are
// called on the way of every request; a panic in one is the request's. Nothing here
// starts a goroutine: the Run of a Controller is in the caller's.
//
// # Choosing numbers
//
//   - Weights: 1, 5, 10, 25, 50, 100 %. At a share of p, of n users p·n ± 2·√(n·p·(1−p))
//     are in the canary: of 10 000 users 100 ± 20 at 1 %, so below a thousand users 1 %
//     tells nothing.
//   - Lane: 0 for the canary, 1 for a second one or a control group. Further ones only
//     if three are really under way at once.
//   - Salt: leave it. Give two rollouts one salt if a user is to be in both or none,
//     such as a frontend and its backend.
//   - Identity: the user where there are sign-ins, else an issued id. The address last,
//     or not at all: a mobile network is one user then.
//   - RollbackOver: instant rollback is right unless the stable version has been scaled
//     down or lost its caches; then as long as it takes to warm up, some minutes.
//   - Drain: as long as a session lasts.
//   - MinHold of a Controller: as long as it takes until most users have been back, and
//     longer than the WarmUp of the Judge; five minutes for a shop, hours for a batch.
//     Steps with a gate where somebody has to look.
//   - Alpha of a Judge: 0.001 finds three times the errors of the stable version after
//     about 700 calls of the canary, and a dead canary after ten; 0.05 after 300 and ten.
//   - MinUsers: 30 without a failure show that at most a fifth of the canary's users
//     fail; for 5 % take a Tolerance of 0.05, and expect to need 160 of them.
//   - LoadFactor of Upstreams: 1.25; 2 where it matters that ids stay, as for caches.
//   - Keys of Tokens: 32 random bytes; a new one every few months, with the old one
//     beside it for a day.
package canary
