package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the expected output into testdata/cli.txt")

// TestRun_CommandLines plays testdata/cli.txt: arguments in, output and exit status out.
func TestRun_CommandLines(t *testing.T) {
	text, err := os.ReadFile("testdata/cli.txt")
	require.NoError(t, err)
	head, body, ok := strings.Cut(string(text), "\n\n")
	require.True(t, ok)
	played := head + "\n"
	for line := range strings.Lines(body) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		played += "\n" + line
		env := map[string]string{}
		words := strings.Fields(command)
		for ; words[0] != "ferryman"; words = words[1:] {
			name, value, ok := strings.Cut(words[0], "=")
			require.True(t, ok, line)
			env[name] = value
		}
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), words[1:], func(name string) string { return env[name] }, &stdout, &stderr)
		for out := range strings.Lines(stdout.String()) {
			played += "1> " + out
		}
		for out := range strings.Lines(stderr.String()) {
			played += "2> " + out
		}
		played += fmt.Sprintf("= %d\n", status)
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/cli.txt", []byte(played), 0o644))
	}
	require.Equal(t, string(text), played)
}

func TestRun_VersionNamesVersionCommitAndGo(t *testing.T) {
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), []string{"version"}, func(string) string { return "" }, &stdout, &stderr)
	require.Zero(t, status)
	require.Regexp(t, `^ferryman \S+, commit \S+, go1\.\S+ \w+/\w+\n$`, stdout.String())
	require.Empty(t, stderr.String())
}

// Every message is a line that says what to do, and none shows a stack.
func TestRun_MessagesAreOneLineEach(t *testing.T) {
	text, err := os.ReadFile("testdata/cli.txt")
	require.NoError(t, err)
	for block := range strings.SplitSeq(string(text), "\n$ ") {
		lines := strings.Count(block, "\n2> ")
		switch {
		case strings.HasSuffix(block, "= 0\n"):
			require.Zero(t, lines, block)
		case strings.Contains(block, "bad.toml"):
			require.Equal(t, 4, lines, block)
		case strings.Contains(block, "= 1\n"), strings.Contains(block, "= 2\n"):
			require.Equal(t, 1, lines, block)
		}
		require.NotContains(t, block, "goroutine 1")
	}
}
