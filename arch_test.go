package sluice_test

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A floor may import only from floors below it. ARCHITECTURE.md has the picture.
type floor int

const (
	cellar  floor = iota // internal/…: the standard library only, and each serves at least two packages
	hall                 // vocabulary, windows, metrics
	room                 // breaker, ratelimit, …: never import one another
	porch                // what joins rooms: httpguard, rules, dashboard
	terrace              // contrib/…: own modules with third-party dependencies
	roof                 // examples, bench: own modules that nobody imports
)

func (f floor) String() string {
	return [...]string{"the cellar", "the hall", "the rooms", "the porch", "the terrace", "the roof"}[f]
}

// A tenant is a package's place in the house.
type tenant struct {
	floor floor
	may   map[string]string // package of the project that it may import → what for
}

// house is the plan: every package there is, and those that have a place kept
// for them. An import that is not here is a decision; make it here, with the
// reason. The roof needs no list: it may use what any outsider may use.
var house = map[string]tenant{
	"internal/clock":    {floor: cellar},
	"internal/jsontime": {floor: cellar},
	"internal/notify":   {floor: cellar},
	"internal/roster":   {floor: cellar},
	"internal/stage":    {floor: cellar},
	"internal/stripe":   {floor: cellar},
	"internal/waitq":    {floor: cellar},

	".": {hall, map[string]string{
		"internal/clock": "Chain reads the time once for all its guards",
		"internal/stage": "Call and Chain drive guards in two steps, without a closure",
	}},
	"slidingwindow": {hall, map[string]string{
		"internal/clock":  "the methods without At read the time",
		"internal/stripe": "a busy bucket spreads its writers",
	}},
	"metrics": {floor: hall},

	"breaker": {room, map[string]string{
		".":                 "outcomes, rejections, priorities",
		"slidingwindow":     "what the rules judge",
		"metrics":           "Collect and View",
		"internal/clock":    "one reading for each operation",
		"internal/jsontime": "durations in Config",
		"internal/notify":   "listeners, in order and without a lock",
		"internal/roster":   "one breaker for each key of a Group",
		"internal/stage":    "Call and Chain pass without garbage; marks probes",
		"internal/stripe":   "counters that every call adds to",
	}},
	"adaptive": {room, map[string]string{
		".":                 "outcomes, rejections, priorities, IsProbe",
		"slidingwindow":     "latency histograms, rates of the last seconds",
		"metrics":           "Collect and View",
		"internal/clock":    "one reading for each operation",
		"internal/jsontime": "durations in Config",
		"internal/notify":   "listeners, in order and without a lock",
		"internal/roster":   "one timeout for each key of a TimeoutGroup",
		"internal/stage":    "Call and Chain pass without garbage",
		"internal/stripe":   "counters that every call adds to",
		"internal/waitq":    "the bounded queue in front of a limiter",
	}},
	"ratelimit": {room, map[string]string{
		".":                 "rejections, priorities, Guard around a shared store",
		"slidingwindow":     "rates of the last seconds",
		"metrics":           "Collect and View",
		"internal/clock":    "one reading for each operation",
		"internal/jsontime": "durations in Config",
		"internal/notify":   "listeners, in order and without a lock",
		"internal/roster":   "one limiter for each key of a SharedGroup",
		"internal/stage":    "Call and Chain pass without garbage",
		"internal/stripe":   "totals that every call adds to",
	}},
	"ratelimit/storetest": {room, map[string]string{
		"ratelimit":      "the Store interface that it examines",
		"internal/clock": "how long a store took",
	}},
	"bulkhead": {room, map[string]string{
		".":                 "outcomes, rejections, priorities",
		"metrics":           "Collect and View",
		"internal/clock":    "one reading for each operation",
		"internal/jsontime": "durations in Config",
		"internal/roster":   "one bulkhead for each key of a Group",
		"internal/stage":    "Call and Chain pass without garbage",
		"internal/stripe":   "refusals, which in overload every call adds to",
		"internal/waitq":    "the bounded queue of callers that wait",
	}},
	"retry": {room, map[string]string{
		".":                 "outcomes, RetryAfter, ErrRejected, IsProbe",
		"metrics":           "Collect and View",
		"internal/clock":    "one reading for each operation",
		"internal/jsontime": "durations in Config",
		"internal/stage":    "a call that passes by all guards is not hedged",
		"internal/stripe":   "what calls that fail count stays off the line that every call reads",
	}},
	"canary": {room, map[string]string{
		".":                 "outcomes, rejections",
		"slidingwindow":     "what the judge counts",
		"metrics":           "Collect and View",
		"internal/clock":    "schedules",
		"internal/jsontime": "durations in Config",
		"internal/notify":   "listeners, in order and without a lock",
		"internal/stripe":   "picks by version, which every pick adds to",
	}},
	"canary/hashes": {floor: room}, // what other products put their users through; pure functions

	"httpguard": {porch, map[string]string{
		".":                 "outcomes, rejections, priorities, Bypass",
		"adaptive":          "attempt timeouts, concurrency limits, system protection",
		"breaker":           "a breaker for each upstream or route",
		"bulkhead":          "slots for each upstream or route",
		"canary":            "which version serves a request",
		"ratelimit":         "limits for users, routes and all",
		"retry":             "further attempts",
		"metrics":           "Collect and View",
		"internal/clock":    "one reading for each request",
		"internal/jsontime": "durations in Config",
		"internal/notify":   "listeners, in order and without a lock",
		"internal/stage":    "guards in two steps, without a closure",
		"internal/stripe":   "counters that every request adds to",
	}},
	"httpguard/guardtest": {porch, map[string]string{
		"breaker":   "its own tests examine guards that have breakers",
		"httpguard": "its own tests examine it first of all",
	}},
	"httpguard/tokenserver": {porch, map[string]string{
		".":              "rejections, priorities",
		"httpguard":      "refusals and headers",
		"metrics":        "Collect and View",
		"ratelimit":      "the limiters that it serves",
		"internal/clock": "one reading for each request",
	}},
	"rules": {porch, map[string]string{
		".":                 "Guard, Chain",
		"adaptive":          "builds and updates them from a document",
		"breaker":           "builds and updates them from a document",
		"bulkhead":          "builds and updates them from a document",
		"canary":            "builds and updates them from a document",
		"ratelimit":         "builds and updates them from a document",
		"retry":             "builds and updates them from a document",
		"metrics":           "Collect and View",
		"internal/clock":    "when a source was read",
		"internal/jsontime": "durations in the document",
		"internal/notify":   "listeners, in order and without a lock",
	}},
	"rules/httpsource": {porch, map[string]string{
		"rules": "the Source interface that it implements",
	}},
	"dashboard": {porch, map[string]string{
		"metrics":        "all that it shows",
		"internal/clock": "its ticks",
	}},

	"contrib/grpcguard": {terrace, map[string]string{
		".":         "outcomes, rejections, Guard",
		"adaptive":  "attempt timeouts, concurrency limits",
		"breaker":   "a breaker for each target or method",
		"bulkhead":  "slots for each target or method",
		"canary":    "which version serves a call",
		"ratelimit": "limits for each method",
		"retry":     "further attempts",
		"metrics":   "Collect and View",
	}},
	"contrib/otelmetrics": {terrace, map[string]string{"metrics": "what it exports"}},
	"contrib/prommetrics": {terrace, map[string]string{"metrics": "what it exports"}},
	"contrib/redisstore": {terrace, map[string]string{
		".":                   "outcomes, Guard around the store",
		"breaker":             "the ProbeBudget interface that it implements",
		"canary":              "the plans that it distributes",
		"metrics":             "Collect and View",
		"ratelimit":           "the Store interface that it implements",
		"ratelimit/storetest": "its conformance test",
	}},
	"contrib/yamlrules": {terrace, map[string]string{"rules": "the document that it decodes into"}},

	"examples/...": {floor: roof},
	"bench/...":    {floor: roof},
}

// place finds a package's row: its own, or that of the tree it grows in.
func place(pkg string) (tenant, bool) {
	if row, ok := house[pkg]; ok {
		return row, true
	}
	for tree, row := range house {
		if parent, ok := strings.CutSuffix(tree, "/..."); ok && inside(pkg, parent) {
			return row, true
		}
	}
	return tenant{}, false
}

// above reports whether from may look down on to: from a higher floor, or from
// a sub-package of to. The cellar is one level: its packages see only the standard library.
func above(from, to string) bool {
	f, _ := place(from)
	t, _ := place(to)
	if f.floor == t.floor {
		return f.floor != cellar && strings.HasPrefix(from, to+"/")
	}
	return f.floor > t.floor
}

// objection says why package from must not import package to of the project, and
// what to do instead; it is empty if the import is right.
func objection(from, to string) string {
	f, known := place(from)
	if !known {
		return from + " is not in the table of arch_test.go. Give it a floor there, and a reason for each import."
	}
	t, known := place(to)
	if !known {
		return to + " is not in the table of arch_test.go. Give it a floor there first."
	}
	switch {
	case from == to: // the external test of a package
		return ""
	case t.floor == roof:
		return "nobody imports what is on the roof, so that it can change freely. Move what both need to the package it belongs to."
	case f.floor >= terrace && t.floor == cellar:
		return from + " shows what outsiders can do, and they cannot import internal packages. Use the exported API; where it lacks something, add it there."
	case f.floor == roof, f.may[to] != "":
		return ""
	case f.floor == cellar:
		return "the cellar imports the standard library only. Pass in what it needs as a value or a function."
	case f.floor < t.floor:
		return from + " is on a lower floor (" + f.floor.String() + ") than " + to + " (" + t.floor.String() + "), and imports go down only. " +
			"Declare a small interface in " + from + " or take a function, and let " + to + " or the caller supply it."
	case above(from, to):
		return "that goes down, but is not in " + from + "'s row in arch_test.go. If it really needs " + to + ", add it there with the reason."
	case f.floor == room:
		return "rooms never import one another. Declare a small interface in " + from + " or take a function, and let the porch or the caller supply it; " +
			"what both rooms need belongs in the hall or the cellar."
	default:
		return "both are on one floor (" + f.floor.String() + "), and imports go down only, never sideways. " +
			"Let the caller join them, or move what both need one floor down."
	}
}

// built returns the folders that have Go files, bench apart.
func built(t *testing.T) map[string]bool {
	t.Helper()
	pkgs := map[string]bool{}
	for _, s := range sources(t) {
		if !inside(s.pkg, "bench") {
			pkgs[s.pkg] = true
		}
	}
	return pkgs
}

// local turns an import path into the folder it names, if it is the project's.
func local(imported string) (string, bool) {
	if imported == project {
		return ".", true
	}
	return strings.CutPrefix(imported, project+"/")
}

func TestHouse_PlanGoesDownAndGivesReasons(t *testing.T) {
	for from, row := range house {
		for to, reason := range row.may {
			assert.Containsf(t, house, to, "%s may import %s, which is not in the table", from, to)
			assert.Truef(t, above(from, to), "the table lets %s import %s, which is not below it", from, to)
			assert.NotEmptyf(t, reason, "the table gives no reason why %s may import %s", from, to)
		}
	}
}

func TestHouse_ImportsFollowThePlan(t *testing.T) {
	for pkg := range built(t) {
		_, known := place(pkg)
		assert.Truef(t, known, "%s is not in the table of arch_test.go. Give it a floor there, and a reason for each import.", pkg)
	}
	for _, s := range sources(t) {
		if inside(s.pkg, "bench") {
			continue
		}
		s.imports(func(spec *ast.ImportSpec, imported string) {
			to, ok := local(imported)
			if !ok {
				return
			}
			if why := objection(s.pkg, to); why != "" {
				t.Errorf("%s: %s must not import %s: %s", s.at(spec), s.pkg, to, why)
			}
		})
	}
}

// The plan's own judgement, so that a hole in it does not pass unseen.
func TestHouse_ObjectionSaysWhyAndWhatInstead(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"breaker", "slidingwindow", ""},
		{"breaker", "breaker", ""},
		{"httpguard", "breaker", ""},
		{"httpguard/guardtest", "httpguard", ""},
		{"examples/gateway", "httpguard", ""},
		{"breaker", "retry", "rooms never import one another. Declare a small interface in breaker"},
		{"slidingwindow", "metrics", "never sideways"},
		{"metrics", "breaker", "metrics is on a lower floor (the hall) than breaker (the rooms)"},
		{".", "breaker", "imports go down only"},
		{"dashboard", "breaker", "not in dashboard's row"},
		{"dashboard", "rules", "never sideways"},
		{"httpguard", "httpguard/guardtest", "never sideways"},
		{"internal/clock", "internal/stripe", "the standard library only"},
		{"internal/clock", "metrics", "the standard library only"},
		{"examples/gateway", "internal/clock", "outsiders"},
		{"contrib/redisstore", "internal/stage", "outsiders"},
		{"httpguard", "examples/gateway", "nobody imports"},
		{"examples/fleet", "bench/report", "nobody imports"},
		{"breaker", "unheard/of", "unheard/of is not in the table"},
		{"unheard/of", "breaker", "unheard/of is not in the table"},
	} {
		if c.want == "" {
			assert.Emptyf(t, objection(c.from, c.to), "%s → %s", c.from, c.to)
			continue
		}
		assert.Containsf(t, objection(c.from, c.to), c.want, "%s → %s", c.from, c.to)
	}
}

// A package in the cellar that serves one other belongs into that one. Who
// serves is counted from the code; a package that is planned and not yet built
// counts by its row.
func TestHouse_CellarServesAtLeastTwo(t *testing.T) {
	exists := built(t)
	uses := map[string]map[string]bool{}
	add := func(from, to string) {
		if uses[to] == nil {
			uses[to] = map[string]bool{}
		}
		uses[to][from] = true
	}
	for _, s := range sources(t) {
		s.imports(func(_ *ast.ImportSpec, imported string) {
			if to, ok := local(imported); ok && !s.test && s.pkg != to {
				add(s.pkg, to)
			}
		})
	}
	for from, row := range house {
		for to := range row.may {
			if !exists[from] {
				add(from, to)
			}
		}
	}
	for pkg := range exists {
		if row, known := place(pkg); known && row.floor == cellar {
			serves := slices.Sorted(maps.Keys(uses[pkg]))
			assert.GreaterOrEqualf(t, len(serves), 2,
				"%s serves %v alone. Move it into that package, or name in the table of arch_test.go the planned package that will need it.", pkg, serves)
		}
	}
}
