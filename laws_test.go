package sluice_test

import (
	"go/ast"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A ban names something from another package that the root module's code (tests
// apart) must not use.
type ban struct {
	names string // separated by spaces
	why   string
}

var bans = map[string]ban{
	"time": {
		names: "Now Since Until",
		why:   "time is read once per operation, by internal/clock, and passed down as now int64; clock.At turns a deadline into it.",
	},
	"net/http": {
		names: "DefaultServeMux Handle HandleFunc",
		why:   "http.DefaultServeMux belongs to the user. Return an http.Handler.",
	},
	"fmt": {
		names: "Print Printf Println",
		why:   "nothing is printed. Log to the *slog.Logger that the user gave.",
	},
	"os": {
		names: "Stdout Stderr Exit",
		why:   "nothing is printed, and the process is the user's. Log to the *slog.Logger that the user gave; return an error.",
	},
	"log": {
		names: "Default Fatal Fatalf Fatalln Panic Panicf Panicln Print Printf Println SetOutput",
		why:   "the standard logger is a global. Log to the *slog.Logger that the user gave.",
	},
	"log/slog": {
		names: "Debug DebugContext Default Error ErrorContext Info InfoContext Log LogAttrs SetDefault Warn WarnContext",
		why:   "the default logger is a global. Log to the *slog.Logger that the user gave.",
	},
	"go.uber.org/atomic": {
		names: "Int64 NewInt64 Uint64 NewUint64",
		why:   "its 64-bit words are not aligned on 32-bit targets, and there they crash. Use sync/atomic's.",
	},
}

// excused are the files that may break a ban all the same: file → package → why.
var excused = map[string]map[string]string{
	"internal/clock/clock.go": {"time": "this is where time is read"},
	"httpguard/outcome.go":    {"time": "a date in Retry-After is one of the wall clock; a deadline is compared only for a request that was withdrawn"},
}

func TestLaws_NoForbiddenUse(t *testing.T) {
	needed := map[string]bool{}
	for _, s := range sources(t) {
		if s.module != "." || s.test {
			continue
		}
		s.selectors(func(sel *ast.SelectorExpr, imported string) {
			for name := range strings.FieldsSeq(bans[imported].names) {
				switch {
				case name != sel.Sel.Name:
				case excused[s.path][imported] != "":
					needed[s.path+" "+imported] = true
				default:
					t.Errorf("%s: %s.%s: %s", s.at(sel), path.Base(imported), name, bans[imported].why)
				}
			}
		})
	}
	for file, packages := range excused {
		for imported := range packages {
			assert.Truef(t, needed[file+" "+imported], "%s is excused for %s and does not need it: take it off the list", file, imported)
		}
	}
}

// What init does, it does to every program that links the package, before main
// and whether the program wants it or not.
func TestLaws_NoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: no package has an init: do it in a constructor, or where it is first needed", s.at(f))
			}
		}
	}
}

// A constructor that starts a goroutine needs a Close that is never forgotten.
// What samples does so inside a Run(ctx) that the user starts.
func TestLaws_ConstructorsStartNoGoroutine(t *testing.T) {
	for _, s := range sources(t) {
		if s.module != "." || s.test {
			continue
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "New") {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if started, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s: %s starts a goroutine: start it in a Run(ctx) that the user calls", s.at(started), f.Name.Name)
				}
				return true
			})
		}
	}
}

// A lock, pool, map or channel at package level is state that every user of the
// process shares, and one made in a synctest bubble and touched outside ends it.
func TestLaws_NoStateAtPackageLevel(t *testing.T) {
	for _, s := range sources(t) {
		if s.module != "." || s.test {
			continue
		}
		for _, decl := range s.file.Decls {
			vars, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range vars.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				if what := state(v); what != "" {
					t.Errorf("%s: %s is %s at package level: let an object own it", s.at(v), v.Names[0].Name, what)
				}
			}
		}
	}
}

// state names the kind of shared state that a package variable is, as far as
// its declaration shows; it is empty for a plain value.
func state(v *ast.ValueSpec) string {
	shapes := append([]ast.Expr{v.Type}, v.Values...)
	for _, shape := range shapes {
		if addr, ok := shape.(*ast.UnaryExpr); ok {
			shape = addr.X
		}
		if made, ok := shape.(*ast.CallExpr); ok {
			if f, ok := made.Fun.(*ast.Ident); ok && (f.Name == "make" || f.Name == "new") {
				shape = made.Args[0]
			}
		}
		if literal, ok := shape.(*ast.CompositeLit); ok {
			shape = literal.Type
		}
		if pointer, ok := shape.(*ast.StarExpr); ok {
			shape = pointer.X
		}
		if generic, ok := shape.(*ast.IndexExpr); ok {
			shape = generic.X
		}
		switch shape := shape.(type) {
		case *ast.ChanType:
			return "a channel"
		case *ast.MapType:
			return "a map"
		case *ast.SelectorExpr:
			if x, ok := shape.X.(*ast.Ident); ok && (x.Name == "sync" || x.Name == "atomic") {
				return x.Name + "." + shape.Sel.Name
			}
		}
	}
	return ""
}
