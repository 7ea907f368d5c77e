// The gateway example plays one incident twice, on loopback and with real HTTP:
// a gateway in front of two services, one of which begins to hang. The first act
// has no protection, the second has a circuit breaker and an attempt timeout on
// each upstream. It ends with what was measured in the two, and exits 0 if the
// protected gateway kept its healthy service up while the other one hung.
//
//	go run ./examples/gateway
//	go run ./examples/gateway -duration 2m
//
// With a config it plays nothing, and is a gateway to real upstreams until SIGTERM or
// an interrupt. gateway.json is an example, and config.go and settings.go say what the
// keys mean; those of a breaker are breaker.Config's. The timeout of an attempt is fixed at its base as yet; max is
// for one that follows what it measures.
//
//	go run ./examples/gateway -config examples/gateway/gateway.json
//
// It answers 502 when an upstream cannot be reached, 504 when it takes too long, and
// 503 with a Retry-After when its breaker is open, no slot is free, or the gateway
// drains; 400 for a path that might lead out of what an upstream's URL is confined to,
// and for CONNECT; a client that has left is a 499 in its log at Debug. One that stands
// still in a body for client_idle_timeout is cut off. /healthz and
// /debug/sluice are on the admin address, which is not for strangers. On SIGTERM it
// lets the requests that it has end, and exits with 0 if they did; what it cannot
// start with is an error, and then it exits with 1.
//
// The part worth copying is gateway.go with path.go, and lane.go for what is there once
// for each upstream. The gateway to real upstreams also has
//
//	config.go     what it is told, with settings.go for what services may have
//	              otherwise, and object.go for JSON that is read strictly
//	daemon.go     which serves, and drains
//	steady.go     what ends clients that stand still
//	admin.go      what operators look at
//	report.go     what the log tells of each service
//
// The rest is the theatre of the demonstration:
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
