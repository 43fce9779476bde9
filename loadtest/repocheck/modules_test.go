package repocheck

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// modules are the folders with a go.mod.
func modules(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, name := range files(t, func(name string) bool { return path.Base(name) == "go.mod" }) {
		dirs = append(dirs, path.Dir(name))
	}
	slices.Sort(dirs)
	return dirs
}

func TestWorkspace_UsesEveryModuleAndNothingElse(t *testing.T) {
	var work struct{ Use []struct{ DiskPath string } }
	require.NoError(t, json.Unmarshal([]byte(output(t, ".", "go", "work", "edit", "-json", "go.work")), &work))
	var used []string
	for _, u := range work.Use {
		used = append(used, path.Clean(u.DiskPath))
	}
	slices.Sort(used)
	require.Equal(t, modules(t), used)

	m := regexp.MustCompile(`(?m)^  MODULES: (.+)$`).FindStringSubmatch(read(t, "Taskfile.yml"))
	require.NotNil(t, m, "Taskfile.yml must list the modules")
	listed := strings.Fields(m[1])
	slices.Sort(listed)
	require.Equal(t, modules(t), listed, "Taskfile.yml")
}

func TestModules_HaveNoReplaceAndOneGoLine(t *testing.T) {
	lines := map[string][]string{}
	for _, name := range append(files(t, func(name string) bool { return path.Base(name) == "go.mod" }), "go.work") {
		text := read(t, name)
		require.NotRegexp(t, `(?m)^\s*replace\b`, text, name)
		m := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(text)
		require.NotNil(t, m, name)
		lines[m[1]] = append(lines[m[1]], name)
	}
	require.Len(t, lines, 1, "each module has the same go line: %v", lines)
}

func TestModules_NoneIsUnderTheAGPL(t *testing.T) {
	seen := map[string]bool{}
	for _, dir := range modules(t) {
		args := []string{"list", "-deps", "-test", "-tags", "integration,clients", "-f", "{{with .Module}}{{.Path}} {{.Dir}}{{end}}", "./..."}
		if strings.Contains(read(t, path.Join(dir, "go.mod")), "\ntool ") {
			args = append(args, "tool")
		}
		for line := range strings.Lines(output(t, dir, "go", args...)) {
			name, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name == "" || seen[name] {
				continue
			}
			seen[name] = true
			require.False(t, affero(t, folder), "%s is under the AGPL: find another module", name)
		}
	}
	require.Greater(t, len(seen), 20)
}

// affero reports whether a folder has the licence that we cannot take.
func affero(t *testing.T, dir string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		if e.IsDir() || (!strings.Contains(upper, "LICEN") && !strings.Contains(upper, "COPYING")) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		if strings.Contains(strings.ToUpper(string(text[:min(len(text), 500)])), "GNU AFFERO GENERAL PUBLIC LICENSE") {
			return true
		}
	}
	return false
}

func TestAffero_IsFoundWhereItIs(t *testing.T) {
	dir := t.TempDir()
	require.False(t, affero(t, dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LICENSE.md"), []byte("  GNU Affero General Public License\nVersion 3"), 0o644))
	require.True(t, affero(t, dir))
}

// Modules meet as binaries over HTTP.
func TestModules_DoNotImportEachOther(t *testing.T) {
	for _, dir := range modules(t) {
		text := read(t, path.Join(dir, "go.mod"))
		_, requires, _ := strings.Cut(text, "\n")
		require.NotContains(t, requires, "github.com/Bunty9/ferryman", dir)
	}
}
