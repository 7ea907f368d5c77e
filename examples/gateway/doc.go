// The gateway example plays one incident twice, on loopback and with real HTTP:
// a gateway in front of two services, one of which begins to hang. The first act
// has no protection, the second has a circuit breaker and an attempt timeout on
// each upstream. It ends with what was measured in the two, and exits 0 if the
// protected gateway kept its healthy service up while the other one hung.
//
//	go run ./examples/gateway
//	go run ./examples/gateway -duration 2m
//
// The part worth copying is gateway.go. The rest is the theatre around it:
//
//	demo.go       plays both acts
//	plan.go       how long each phase is, how many slots there are, and why
//	act.go        plays the incident once
//	scene.go      puts together what takes part in it:
//	backend.go    the services,
//	frontdoor.go  the slots that all requests share,
//	load.go       the clients,
//	tally.go      and what these see
//	network.go    starts servers, and reaches them
//	screen.go     the table, as lines (lines.go) or drawn over itself (live.go)
//	summary.go    both acts compared
package main
