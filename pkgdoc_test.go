package sluice_test

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each package, in every module, is introduced once. The comment stands in
// doc.go, where a reader looks for it; a package of one file, and one that is
// internal or a program, may have it in the file named after it.
func TestPackageDocs(t *testing.T) {
	packages := map[string][]source{}
	for _, s := range sources(t) {
		packages[s.pkg] = append(packages[s.pkg], s)
	}
	for pkg, files := range packages {
		var code, comments []source
		for _, s := range files {
			if !s.test {
				code = append(code, s)
			}
			if s.file.Doc.Text() != "" { // empty for a build constraint
				comments = append(comments, s)
			}
		}
		if len(code) == 0 {
			assert.Emptyf(t, comments, "%s has only tests, and needs no package comment", pkg)
			continue
		}
		var where []string
		for _, s := range comments {
			where = append(where, s.path)
		}
		if !assert.Lenf(t, comments, 1, "%s must have one package comment; found in %v", pkg, where) {
			continue
		}

		doc, name := comments[0], code[0].file.Name.Name
		assert.Falsef(t, doc.test, "%s: the package comment belongs into the code, not into a test", doc.path)
		homes := []string{"doc.go"}
		if len(code) == 1 {
			homes = append(homes, path.Base(code[0].path))
		}
		if name == "main" {
			homes = append(homes, "main.go")
		}
		if inside(pkg, "internal") {
			homes = append(homes, name+".go")
		}
		assert.Containsf(t, homes, path.Base(doc.path), "%s: the package comment belongs into doc.go", doc.path)

		begin := []string{"Package " + name + " "}
		if name == "main" {
			begin = []string{"Command " + path.Base(pkg) + " ", "The " + path.Base(pkg) + " "}
		}
		text := doc.file.Doc.Text()
		starts := func(prefix string) bool { return strings.HasPrefix(text, prefix) }
		assert.Truef(t, slices.ContainsFunc(begin, starts), "%s: the package comment must begin with one of %q; it begins with %.40q", doc.path, begin, text)
	}
}

// Everything exported says what it is for, and its comment begins with its name,
// as godoc shows it. A group of constants or errors may share one comment; a
// method that fmt or errors calls is what their documentation says.
func TestExportedNamesAreDocumented(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.file.Name.Name == "main" {
			continue
		}
		missing := map[string]string{} // name → file:line
		for _, decl := range s.file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if exported(decl) && !documents(decl.Doc, decl.Name.Name) {
					missing[decl.Name.Name] = s.at(decl)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() && !documents(spec.Doc, spec.Name.Name) && !documents(decl.Doc, spec.Name.Name) {
							missing[spec.Name.Name] = s.at(spec)
						}
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							if name.IsExported() && spec.Doc.Text() == "" && spec.Comment.Text() == "" && decl.Doc.Text() == "" {
								missing[name.Name] = s.at(spec)
							}
						}
					}
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(missing)) {
			t.Errorf("%s: %s needs a comment that begins with its name", missing[name], name)
		}
	}
}

// exported reports whether f is part of what others see: it and its receiver
// have exported names, and it is not there for fmt or errors only.
func exported(f *ast.FuncDecl) bool {
	if !f.Name.IsExported() {
		return false
	}
	if f.Recv == nil {
		return true
	}
	switch f.Name.Name {
	case "Error", "Is", "String", "Unwrap":
		return false
	}
	receiver := f.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.IsExported()
		default:
			return false
		}
	}
}

// documents reports whether doc begins with name, after an article if it has one.
func documents(doc *ast.CommentGroup, name string) bool {
	text := doc.Text()
	for _, article := range []string{"", "A ", "An ", "The "} {
		if rest, ok := strings.CutPrefix(text, article+name); ok && (rest == "" || !isLetter(rest[0])) {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}
