package sluice_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// edit decodes what `go mod edit -json` or `go work edit -json` says of a file.
func edit(t *testing.T, kind, file string, into any) {
	t.Helper()
	show := exec.CommandContext(t.Context(), "go", kind, "edit", "-json", file)
	out, err := show.Output()
	require.NoErrorf(t, err, "%v", show)
	require.NoError(t, json.Unmarshal(out, into))
}

// nested returns the folders of all modules but the root's.
func nested(t *testing.T) []string {
	t.Helper()
	var folders []string
	require.NoError(t, walk(func(name string) error {
		if path.Base(name) == "go.mod" && name != "go.mod" {
			folders = append(folders, path.Dir(name))
		}
		return nil
	}))
	return folders
}

// Each nested module is built against the root beside it, in the workspace and
// without: a release must not find an adapter that lags behind.
func TestModules_AreBuiltAgainstThisRoot(t *testing.T) {
	for _, folder := range nested(t) {
		var mod struct {
			Module  struct{ Path string }
			Replace []struct{ Old, New struct{ Path string } }
		}
		edit(t, "mod", path.Join(folder, "go.mod"), &mod)
		assert.Equal(t, project+"/"+folder, mod.Module.Path)

		replaced := map[string]string{}
		for _, r := range mod.Replace {
			replaced[r.Old.Path] = path.Join(folder, r.New.Path)
		}
		assert.Equalf(t, ".", replaced[project], "%s/go.mod must replace %s by the root", folder, project)
	}
}

// The workspace is what `go test work` tests. bench stays out: its peers drag in
// hundreds of packages that nobody who tests the library should wait for.
func TestModules_AreAllInTheWorkspaceButBench(t *testing.T) {
	var work struct{ Use []struct{ DiskPath string } }
	edit(t, "work", "go.work", &work)
	var used []string
	for _, u := range work.Use {
		used = append(used, path.Clean(u.DiskPath))
	}
	want := []string{"."}
	for _, folder := range nested(t) {
		if folder != "bench" {
			want = append(want, folder)
		}
	}
	assert.ElementsMatch(t, want, used)
}

// A tool that go.mod names raises the versions of everybody who requires it.
func TestModules_RootNamesNoTool(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	assert.NotRegexp(t, `(?m)^\s*tool\b`, string(text))
}
