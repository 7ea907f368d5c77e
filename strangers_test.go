package sluice_test

import (
	"go/ast"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// linked is the import graph of the root module as the go command sees it:
// package → what it imports, the standard library included, tests left out.
func linked(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	out, err := list.Output()
	require.NoErrorf(t, err, "%v", list)
	graph := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		graph[words[0]] = words[1:]
	}
	return graph
}

// chain returns the shortest way by which from reaches to, or nil.
func chain(graph map[string][]string, from, to string) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			var way []string
			for at := to; at != ""; at = cameFrom[at] {
				way = append(way, at)
			}
			slices.Reverse(way)
			return way
		}
		for _, next := range graph[queue[0]] {
			if _, seen := cameFrom[next]; !seen {
				cameFrom[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// servesHTTP lists who in the root module may link net/http, with all below them.
var servesHTTP = []string{"httpguard", "dashboard", "rules/httpsource"}

func mayServeHTTP(pkg string) bool {
	return slices.ContainsFunc(servesHTTP, func(parent string) bool { return inside(pkg, parent) })
}

// What a package links, its user links: a program that wants a breaker must not
// get an HTTP server, and expvar puts a handler on http.DefaultServeMux.
func TestHouse_LinksOnlyWhatItMust(t *testing.T) {
	graph := linked(t)
	for imported := range graph {
		pkg, ours := local(imported)
		if !ours {
			thirdParty := strings.Contains(strings.Split(imported, "/")[0], ".")
			assert.Falsef(t, thirdParty && imported != "go.uber.org/atomic",
				"the root module links %s. Third-party code belongs into a module of its own under contrib.", imported)
			continue
		}
		assert.Nilf(t, chain(graph, imported, "expvar"), "%s links expvar: metrics.Set is a fmt.Stringer, and the user publishes it", pkg)
		if !mayServeHTTP(pkg) {
			assert.Nilf(t, chain(graph, imported, "net/http"), "%s links net/http. Only %v may; move what needs it there.", pkg, servesHTTP)
		}
	}
	require.Equal(t, []string{"a", "b", "c"}, chain(map[string][]string{"a": {"x", "b"}, "b": {"c"}}, "a", "c"))
}

// stranger says what is wrong with a file's import from outside the project.
func stranger(s source, imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case imported == "expvar":
		return "expvar puts a handler on http.DefaultServeMux. metrics.Set is a fmt.Stringer; the user publishes it."
	case s.module == "." && inside(imported, "net/http") && !mayServeHTTP(s.pkg):
		return "only " + strings.Join(servesHTTP, ", ") + " may know HTTP. Move what needs it there."
	case !strings.Contains(first, "."), inside(imported, project):
		return ""
	case inside(imported, "github.com/stretchr/testify"):
		if !s.test {
			return "testify is for tests only."
		}
		if last := path.Base(imported); last != "assert" && last != "require" {
			return "tests use testify's assert and require only."
		}
		return ""
	case s.module != ".":
		return "" // its own go.mod answers for it
	case imported == "go.uber.org/atomic" && !inside(s.pkg, "internal"):
		return ""
	case inside(s.pkg, "internal"):
		return "the cellar imports the standard library only."
	}
	return "the root module's users get every package it requires. Put it into a module of its own under contrib, or say in ARCHITECTURE.md why not."
}

func TestHouse_StrangersStayOutside(t *testing.T) {
	for _, s := range sources(t) {
		if inside(s.pkg, "bench") {
			continue
		}
		s.imports(func(spec *ast.ImportSpec, imported string) {
			if why := stranger(s, imported); why != "" {
				t.Errorf("%s: %s must not import %s: %s", s.at(spec), s.pkg, imported, why)
			}
		})
	}
}

func TestHouse_StrangerIsTold(t *testing.T) {
	code := func(pkg string) source { return source{pkg: pkg, module: "."} }
	test := func(pkg string) source { return source{pkg: pkg, module: ".", test: true} }
	for _, c := range []struct {
		s        source
		imported string
		want     string
	}{
		{code("breaker"), "sync/atomic", ""},
		{code("breaker"), "go.uber.org/atomic", ""},
		{code("breaker"), project + "/slidingwindow", ""},
		{code("httpguard/guardtest"), "net/http/httptest", ""},
		{test("breaker"), "github.com/stretchr/testify/require", ""},
		{source{pkg: "contrib/redisstore", module: "contrib/redisstore"}, "github.com/redis/go-redis/v9", ""},
		{code("httpguard"), "expvar", "DefaultServeMux"},
		{test("breaker"), "net/http/httptest", "may know HTTP"},
		{code("breaker"), "net/http", "may know HTTP"},
		{code("rules"), "net/http", "may know HTTP"},
		{code("breaker"), "github.com/stretchr/testify/require", "tests only"},
		{test("breaker"), "github.com/stretchr/testify/mock", "assert and require only"},
		{code("internal/clock"), "go.uber.org/atomic", "standard library only"},
		{code("ratelimit"), "github.com/redis/go-redis/v9", "module of its own"},
	} {
		got := stranger(c.s, c.imported)
		if c.want == "" {
			assert.Emptyf(t, got, "%s imports %s", c.s.pkg, c.imported)
			continue
		}
		assert.Containsf(t, got, c.want, "%s imports %s", c.s.pkg, c.imported)
	}
}
