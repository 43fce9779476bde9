package config

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoad_SaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("empty"), "")
	write(t, at("big"), "")
	require.NoError(t, os.Truncate(at("big"), 1<<30))
	write(t, at("nul"), "\n\x00")
	require.NoError(t, os.Symlink("loop", at("loop")))
	require.NoError(t, os.Symlink("nothing", at("dangling")))
	socket, err := net.Listen("unix", at("socket"))
	require.NoError(t, err)
	defer socket.Close()
	for name, want := range map[string]string{
		"missing":       "there is no such file: create it or name another one",
		"dangling":      "there is no such file: create it or name another one",
		"":              "is a directory: name the file in it",
		"loop":          "is a loop of symbolic links: point it at a file",
		"big":           "has more than 4 MiB: this is hardly a configuration",
		"socket":        "cannot be opened: no such device or address: name a regular file",
		"empty":         "routes: there is none: add [[routes]] with a prefix and an upstream",
		"empty/x":       "cannot be opened: not a directory: name a regular file",
		"nul":           "holds NUL bytes: save it as UTF-8 text",
		"../dev/null/x": "there is no such file: create it or name another one",
	} {
		_, err := Load(at(name))
		require.ErrorContains(t, err, want, name)
		require.True(t, strings.HasPrefix(err.Error(), at(name)), err)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestLoad_TakesTheLargestAllowedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	write(t, path, body(7)+strings.Repeat("#\n", (maxMiB<<20-len(body(7)))/2))
	c, err := Load(path)
	require.NoError(t, err)
	require.Equal(t, 7, c.FailureThreshold)
}

func TestLoad_EmptyNameIsNoPanic(t *testing.T) {
	_, err := Load("")
	require.ErrorContains(t, err, "there is no such file")
}
