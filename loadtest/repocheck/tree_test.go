package repocheck

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// files lists the repository's files for which want is true, by their names from the root.
func files(t *testing.T, want func(name string) bool) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".lab" || d.Name() == "bin"):
			return fs.SkipDir
		case !d.IsDir() && want(name):
			list = append(list, name)
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, list, "nothing was looked at")
	return list
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

// output is what a program prints in a folder, outside of the workspace.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = filepath.Join(root, dir), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v in %s: %s", name, args, dir, stderr.String())
	return string(out)
}
