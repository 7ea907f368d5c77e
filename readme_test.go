package sluice_test

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The commands that the README opens with: see it, test it.
const (
	mainCommand = "go run ./examples/gateway"
	testCommand = "go test work"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// fenced returns the blocks of a Markdown text that are marked as lang.
func fenced(text, lang string) []string {
	var blocks []string
	for _, found := range regexp.MustCompile("(?ms)^```"+lang+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, found[1])
	}
	return blocks
}

// markdown returns every Markdown file of the project.
func markdown(t *testing.T) []string {
	t.Helper()
	var files []string
	require.NoError(t, walk(func(name string) error {
		if path.Ext(name) == ".md" {
			files = append(files, name)
		}
		return nil
	}))
	require.Contains(t, files, "README.md")
	return files
}

// The README's program is an Example in a file of its own, example_readme_test.go,
// so it compiles, runs and prints what it says.
func TestReadme_ProgramIsAnExample(t *testing.T) {
	var examples []string
	for _, s := range sources(t) {
		if path.Base(s.path) == "example_readme_test.go" {
			examples = append(examples, s.path)
		}
	}
	require.Lenf(t, examples, 1, "the one example_readme_test.go is where the README's program comes from")

	programs := fenced(read(t, "README.md"), "go")
	require.NotEmpty(t, programs)
	shown, err := format.Source([]byte(programs[0]))
	require.NoError(t, err)

	want, lines := program(t, read(t, examples[0]))
	assert.Equalf(t, want, string(shown), "the README's program differs from %s", examples[0])
	assert.LessOrEqual(t, lines, 15, "lines in main: the first program must be small")
}

// program turns the text of a file with one Example into that of a program, and
// counts the lines of its main.
func program(t *testing.T, example string) (text string, lines int) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "example_readme_test.go", example, parser.ParseComments)
	require.NoError(t, err)
	var main *ast.FuncDecl
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Example") {
			require.Nil(t, main, "one Example")
			main = f
		}
	}
	require.NotNil(t, main)

	end := main.Body.Rbrace
	for _, c := range file.Comments {
		if c.Pos() > main.Pos() && c.End() < end && strings.HasPrefix(c.Text(), "Output:") {
			end = c.Pos()
		}
	}
	require.NotEqual(t, main.Body.Rbrace, end, "the Example must state its Output, or it does not run")

	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	var b bytes.Buffer
	b.WriteString(example[:offset(file.Name.Pos())])
	b.WriteString("main")
	b.WriteString(example[offset(file.Name.End()):offset(main.Name.Pos())])
	b.WriteString("main")
	body := strings.TrimRight(example[offset(main.Name.End()):offset(end)], " \t\n")
	b.WriteString(body + "\n}\n")
	b.WriteString(example[offset(main.Body.Rbrace)+1:])

	formatted, err := format.Source(b.Bytes())
	require.NoError(t, err)
	return strings.TrimRight(string(formatted), "\n") + "\n", strings.Count(body, "\n")
}

// What else the README shows of Go are lines of the programs under examples, which are
// compiled and run.
func TestReadme_SnippetsAreLinesOfExamples(t *testing.T) {
	var programs []string
	for _, s := range sources(t) {
		if strings.HasPrefix(s.path, "examples/") {
			programs = append(programs, unindented(read(t, s.path)))
		}
	}
	for _, snippet := range fenced(read(t, "README.md"), "go")[1:] {
		assert.Truef(t, slices.ContainsFunc(programs, func(program string) bool {
			return strings.Contains(program, unindented(snippet))
		}), "in no program under examples:\n%s", snippet)
	}
}

// unindented is text without what gofmt changes when code moves to another depth.
func unindented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

// The configuration that the README shows is the one that its command starts with.
func TestReadme_ShowsTheGatewaysConfiguration(t *testing.T) {
	shown := fenced(read(t, "README.md"), "json")
	require.Len(t, shown, 1)
	assert.Equal(t, read(t, "examples/gateway/gateway.json"), shown[0])
}

// A Go block anywhere else would be compiled by nobody.
func TestMarkdown_HasNoOtherGoCode(t *testing.T) {
	for _, name := range markdown(t) {
		if name != "README.md" {
			assert.Emptyf(t, fenced(read(t, name), "go"), "%s: point to an Example instead", name)
		}
	}
}

func TestReadme_CommandsExist(t *testing.T) {
	blocks := fenced(read(t, "README.md"), "sh")
	require.NotEmpty(t, blocks)
	assert.Contains(t, blocks[0], mainCommand)
	assert.Contains(t, blocks[0], testCommand)

	programs, targets := map[string]bool{}, read(t, "Makefile")
	for _, s := range sources(t) {
		if s.file.Name.Name == "main" {
			programs["./"+s.pkg] = true
		}
	}
	for line := range strings.Lines(strings.Join(blocks, "")) {
		switch words := strings.Fields(line); {
		case strings.HasPrefix(line, "go run "):
			assert.Truef(t, programs[words[2]], "README: %s, but %s is no program", line, words[2])
		case strings.HasPrefix(line, "make "):
			assert.Regexpf(t, "(?m)^"+words[1]+":", targets, "README: %s, but the Makefile has no such target", line)
		}
	}
	for _, found := range regexp.MustCompile("`make ([a-z]+)`").FindAllStringSubmatch(read(t, "README.md"), -1) {
		assert.Regexpf(t, "(?m)^"+found[1]+":", targets, "README: make %s, but the Makefile has no such target", found[1])
	}
}

// CI runs what the README tells a visitor to run.
func TestReadme_CommandsAreRunByCI(t *testing.T) {
	ci := read(t, ".ci/run")
	assert.Regexp(t, `(?m)^`+testCommand+`$`, ci)
	assert.Regexp(t, `(?m)^\s*`+mainCommand+` `, ci)
}

// Numbers that are still to be filled in may not outlive the first measurement.
func TestReadme_HasItsNumbersOnceTheyAreMeasured(t *testing.T) {
	if _, err := os.Stat("bench/RESULTS.md"); err != nil {
		t.Skip("bench/RESULTS.md is not there yet")
	}
	assert.NotContains(t, read(t, "README.md"), "⟦", "fill in the numbers from bench/RESULTS.md")
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestMarkdown_LinksLeadSomewhere(t *testing.T) {
	for _, name := range markdown(t) {
		for _, found := range link.FindAllStringSubmatch(read(t, name), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, ":") {
				continue // another site
			}
			to := name
			if target != "" {
				to = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, found[1])
				continue
			}
			if anchor != "" {
				assert.Containsf(t, headings(read(t, to)), anchor, "%s links to %s", name, found[1])
			}
		}
	}
}

// headings returns the anchors that GitHub makes of a Markdown text's headings.
func headings(text string) []string {
	var anchors []string
	for _, found := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(text, -1) {
		anchor := strings.ReplaceAll(strings.ToLower(found[1]), " ", "-")
		anchors = append(anchors, regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(anchor, ""))
	}
	return anchors
}
