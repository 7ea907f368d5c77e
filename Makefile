FUZZTIME ?= 30s
SOAK ?= 10m

.PHONY: all
all: ## build, vet and test everything quickly (the default)
	go build -o /dev/null work
	go vet work
	go test -short work

.PHONY: ci
ci: ## what CI runs, with the race detector three times over
	RACE_COUNT=3 .ci/run

.PHONY: fuzz
fuzz: ## fuzz each fuzz function for FUZZTIME (30s)
	.ci/fuzz $(FUZZTIME) 0

.PHONY: soak
soak: ## keep the gateway under load and faults for SOAK (10m), and see that it leaks nothing
	go test ./examples/gateway -run '^TestSoak$$' -count=1 -v -timeout 0 -soak $(SOAK)

.PHONY: bench
bench: ## measure against other libraries and write bench/RESULTS.md
	cd bench && GOWORK=off go run ./report

.PHONY: conformance
conformance: ## try other libraries by the same checks and write docs/conformance.md
	cd bench && GOWORK=off go run ./conformance

.PHONY: experiments
experiments: ## run the simulated experiments and write docs/experiments.md
	go run ./examples/experiments

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z]+): ## (.*)/\1\t\2/p' Makefile
