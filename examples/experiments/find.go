package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pattern is what the name of an experiment looks like: the type that it is about, if
// the package has several, its number and its title.
var pattern = regexp.MustCompile(`^Test(?:(\w+)_)?E(\d+)_(\w+)$`)

// An experiment is a test.
type experiment struct {
	number int
	about  string // a type, or ""
	title  string
	claim  string
	test   string // its name
	folder string // of its package, from the root, with slashes
	file   string // within that
}

// find returns the experiments in the tests below root, by number.
func find(root string) ([]experiment, error) {
	var all []experiment
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bench") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		found, err := inFile(root, path)
		all = append(all, found...)
		return err
	})
	slices.SortStableFunc(all, func(a, b experiment) int { return cmp.Compare(a.number, b.number) })
	return all, err
}

// inFile returns the experiments of one file, in order.
func inFile(root, path string) ([]experiment, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	var found []experiment
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv != nil {
			continue
		}
		m := pattern.FindStringSubmatch(f.Name.Name)
		if m == nil {
			continue
		}
		e := experiment{about: m[1], title: words(m[3]), test: f.Name.Name, folder: filepath.ToSlash(filepath.Dir(rel)), file: filepath.Base(rel)}
		e.number, err = strconv.Atoi(m[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.test, err)
		}
		begins := fmt.Sprintf("E%d: ", e.number)
		claim, ok := strings.CutPrefix(f.Doc.Text(), begins)
		if e.claim = strings.TrimSpace(claim); !ok || e.claim == "" {
			return nil, fmt.Errorf("%s: the comment of %s does not begin with %q and what it shows", rel, e.test, begins)
		}
		found = append(found, e)
	}
	return found, nil
}

var capital = regexp.MustCompile(`[A-Z]+[^A-Z]*`)

// words makes "Load step" of "LoadStep".
func words(name string) string {
	split := capital.FindAllString(name, -1)
	for i, w := range split[min(1, len(split)):] {
		split[i+1] = strings.ToLower(w)
	}
	return strings.Join(split, " ")
}
