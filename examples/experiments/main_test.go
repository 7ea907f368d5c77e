package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A page on which an experiment is missing, or says something else, is old. What the
// experiments see is not compared here: that takes as long as they do.
func TestPageIsOfTheseExperiments(t *testing.T) {
	root, err := checkout()
	require.NoError(t, err)
	all, err := find(root)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	have, err := os.ReadFile(filepath.Join(root, pageName))
	require.NoError(t, err)
	const what = "run make experiments"
	for _, e := range all {
		assert.Contains(t, string(have), paragraphs(e.claim), what)
		assert.Contains(t, string(have), "`"+e.test+"` in ["+e.path()+"]", what)
	}
	assert.Len(t, regexp.MustCompile("(?m)^`Test").FindAll(have, -1), len(all), what)
}

// write makes a checkout of one file.
func write(t *testing.T, name, text string) (root string) {
	t.Helper()
	root = t.TempDir()
	path := filepath.Join(root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return root
}

const source = `package x

// E10: calls are
// served.
//
// Always.
func TestLimiter_E10_LoadStep(t *testing.T) {}

// E2: hm.
func TestE2_All(t *testing.T) {}

func TestEverything(t *testing.T) {}
func (x) TestE3_Method(t *testing.T) {}
`

func TestFind(t *testing.T) {
	all, err := find(write(t, "a/b/c_test.go", source))
	require.NoError(t, err)
	assert.Equal(t, []experiment{
		{2, "", "All", "hm.", "TestE2_All", "a/b", "c_test.go"},
		{10, "Limiter", "Load step", "calls are\nserved.\n\nAlways.", "TestLimiter_E10_LoadStep", "a/b", "c_test.go"},
	}, all)
	for _, nowhere := range []string{"a/b/c.go", "a/testdata/c_test.go", ".a/c_test.go", "bench/c_test.go"} {
		all, err := find(write(t, nowhere, source))
		require.NoError(t, err, nowhere)
		assert.Empty(t, all, nowhere)
	}
}

func TestFind_WantsAClaim(t *testing.T) {
	for _, text := range []string{
		"package x\nfunc TestE2_All(t *testing.T) {}\n",
		"package x\n// E3: all.\nfunc TestE2_All(t *testing.T) {}\n",
		"package x\n// E2:\nfunc TestE2_All(t *testing.T) {}\n",
	} {
		_, err := find(write(t, "a/a_test.go", text))
		assert.ErrorContains(t, err, `TestE2_All does not begin with "E2: "`)
	}
}

const told = `{"Action":"start","Package":"x"}
{"Action":"run","Package":"x","Test":"TestE2_All"}
{"Action":"output","Package":"x","Test":"TestE2_All","Output":"=== RUN\n"}
{"Action":"attr","Package":"x","Test":"TestE2_All","Key":"columns","Value":"rule | a | b"}
{"Action":"run","Package":"x","Test":"TestE2_All/slow"}
{"Action":"run","Package":"x","Test":"TestE2_All/quick"}
{"Action":"attr","Package":"x","Test":"TestE2_All/quick","Key":"row","Value":"quick | 1 | 2"}
{"Action":"attr","Package":"x","Test":"TestE2_All/slow","Key":"row","Value":"slow | 3 | 4"}
{"Action":"attr","Package":"x","Test":"TestE2_All/slow","Key":"row","Value":"slow again | 5 | 6"}
{"Action":"attr","Package":"x","Test":"TestE2_All/slow","Key":"other","Value":"7"}
`

// Rows are in the order in which their parts were begun, whichever ends first.
func TestPage(t *testing.T) {
	tables, err := parse(strings.NewReader(told))
	require.NoError(t, err)
	e := experiment{2, "", "All", "all is\nwell.\n\nAlways.", "TestE2_All", "a/b", "c_test.go"}
	text, err := page([]experiment{e}, tables)
	require.NoError(t, err)
	assert.Equal(t, `
## E2: All

All is well.

Always.

| rule | a | b |
|---|---:|---:|
| slow | 3 | 4 |
| slow again | 5 | 6 |
| quick | 1 | 2 |

`+"`TestE2_All` in [a/b/c_test.go](../a/b/c_test.go)\n", string(text[len(intro):]))

	second := e
	second.test, second.about = "TestLimiter_E2_All", "Limiter"
	text, err = page([]experiment{e, second}, tables)
	assert.EqualError(t, err, "TestLimiter_E2_All: was not run")
	for _, heading := range []string{"\n## E2\n\n### All\n", "\n### Limiter: all\n"} {
		assert.Contains(t, string(text), heading)
	}
}

func TestPage_Complaints(t *testing.T) {
	for want, lines := range map[string]string{
		"no columns":              `{"Action":"run","Test":"TestE2_All"}`,
		"no row":                  `{"Action":"run","Test":"TestE2_All"} {"Action":"attr","Test":"TestE2_All","Key":"columns","Value":"a"}`,
		`1 cells in 2 columns`:    `{"Action":"run","Test":"TestE2_All"} {"Action":"attr","Test":"TestE2_All","Key":"columns","Value":"a | b"} {"Action":"attr","Test":"TestE2_All","Key":"row","Value":"c"}`,
		"tells its columns twice": `{"Action":"run","Test":"TestE2_All"} {"Action":"attr","Test":"TestE2_All","Key":"columns","Value":"a"} {"Action":"attr","Test":"TestE2_All","Key":"columns","Value":"a"}`,
		"it is 3":                 `{"Action":"run","Test":"TestE2_All"} {"Action":"output","Test":"TestE2_All","Output":"it is 3\n"} {"Action":"fail","Test":"TestE2_All"}`,
	} {
		tables, err := parse(strings.NewReader(lines))
		if err == nil {
			_, err = page([]experiment{{number: 2, title: "All", claim: "all", test: "TestE2_All"}}, tables)
		}
		assert.ErrorContains(t, err, want)
	}
	_, err := parse(strings.NewReader("FAIL x [build failed]"))
	assert.Error(t, err)
}
