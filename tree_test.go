package sluice_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// project is the root module's path, and the beginning of every other one's.
const project = "github.com/sluicego/sluice"

// A source is one Go file of the project. Paths are relative to the root and
// use slashes; the root itself is ".".
type source struct {
	path   string
	pkg    string // its folder, which its tests share
	module string // the nearest folder above it with a go.mod
	test   bool
	file   *ast.File
	at     func(ast.Node) string // file:line
}

// imports calls yield with each import of the file, unquoted.
func (s source) imports(yield func(spec *ast.ImportSpec, path string)) {
	for _, spec := range s.file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(err) // the parser has accepted it
		}
		yield(spec, imported)
	}
}

// selectors calls yield with each use of a name from an imported package.
func (s source) selectors(yield func(sel *ast.SelectorExpr, path string)) {
	imported := map[string]string{}
	s.imports(func(spec *ast.ImportSpec, p string) {
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = p
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		// An identifier with an object is a variable that hides the package.
		if x, ok := sel.X.(*ast.Ident); ok && x.Obj == nil && imported[x.Name] != "" {
			yield(sel, imported[x.Name])
		}
		return true
	})
}

// inside reports whether folder is parent or lies somewhere in it.
func inside(folder, parent string) bool {
	return folder == parent || strings.HasPrefix(folder, parent+"/")
}

// sources returns every Go file of every module, parsed once for all tests.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

var parsed = sync.OnceValues(func() ([]source, error) {
	var all []source
	fset := token.NewFileSet()
	err := walk(func(name string) error {
		if path.Ext(name) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		all = append(all, source{
			path:   name,
			pkg:    path.Dir(name),
			module: moduleOf(path.Dir(name)),
			test:   strings.HasSuffix(name, "_test.go"),
			file:   file,
			at: func(n ast.Node) string {
				p := fset.Position(n.Pos())
				return p.Filename + ":" + strconv.Itoa(p.Line)
			},
		})
		return nil
	})
	return all, err
})

// walk calls visit with every file of the project, and leaves out what the go
// command leaves out: hidden folders, testdata, and names that begin with "_".
func walk(visit func(name string) error) error {
	return filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if base != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		return visit(filepath.ToSlash(name))
	})
}

func moduleOf(folder string) string {
	for folder != "." {
		if _, err := os.Stat(path.Join(folder, "go.mod")); err == nil {
			return folder
		}
		folder = path.Dir(folder)
	}
	return folder
}
