// Package workflows is nothing but tests of .github/workflows: that everything is pinned, that a job may do
// no more than it has to, and that the modules named there are those of the tree.
package workflows

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const root = "../.."

// pins are the only actions, each by its commit. Whoever moves one looks at what changed.
var pins = map[string]string{
	"actions/checkout":        "3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1",
	"actions/setup-go":        "b7ad1dad31e06c5925ef5d2fc7ad053ef454303e # v7.0.0",
	"actions/upload-artifact": "043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1",
}

// workflow has the keys that these tests look at; actionlint judges the rest.
type workflow struct {
	On          map[string]any    `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Concurrency map[string]any    `yaml:"concurrency"`
	Defaults    struct {
		Run map[string]string `yaml:"run"`
	} `yaml:"defaults"`
	Jobs map[string]job `yaml:"jobs"`
}

type job struct {
	Permissions map[string]string `yaml:"permissions"`
	Timeout     int               `yaml:"timeout-minutes"`
	Strategy    struct {
		Matrix struct {
			Module []string `yaml:"module"`
		} `yaml:"matrix"`
	} `yaml:"strategy"`
	Steps []step `yaml:"steps"`
}

type step struct {
	Uses string         `yaml:"uses"`
	Run  string         `yaml:"run"`
	With map[string]any `yaml:"with"`
}

// files are the workflows, as text by name.
func files(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	require.NoError(t, err)
	all := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		all[filepath.Base(name)] = string(text)
	}
	require.Contains(t, all, "ci.yml")
	require.Contains(t, all, "nightly.yml")
	require.Contains(t, all, "release.yml")
	return all
}

func parsed(t *testing.T) map[string]workflow {
	t.Helper()
	all := map[string]workflow{}
	for name, text := range files(t) {
		var w workflow
		require.NoError(t, yaml.Unmarshal([]byte(text), &w), name)
		require.NotEmpty(t, w.Jobs, name)
		all[name] = w
	}
	return all
}

// unpinned are the lines that use something else than a pin with its version beside it.
func unpinned(text string) (bad []string) {
	for line := range strings.Lines(text) {
		_, used, ok := strings.Cut(line, "uses:")
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(strings.TrimSpace(used), "@")
		if want, known := pins[name]; !known || rest != want {
			bad = append(bad, strings.TrimSpace(line))
		}
	}
	return bad
}

func TestWorkflows_UseOnlyPinnedActions(t *testing.T) {
	for name, text := range files(t) {
		require.Empty(t, unpinned(text), name)
		require.Contains(t, text, "uses:", name)
	}
	for _, bad := range []string{
		"- uses: actions/checkout@v7\n", "uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1\n",
		"uses: ./local\n", "uses: actions/setup-go@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1\n",
		"uses: \"actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1\" # v7.0.1\n",
	} {
		require.NotEmpty(t, unpinned(bad), bad)
	}
}

func TestWorkflows_RunOnlyPinnedTools(t *testing.T) {
	tool := regexp.MustCompile(`\bgo (?:run|install) ([^\s@]+\.[^\s@]+/\S*)`)
	pinned := regexp.MustCompile(`@v\d+\.\d+\.\d+\S*$`)
	for name, text := range files(t) {
		for _, found := range tool.FindAllStringSubmatch(text, -1) {
			require.Regexp(t, pinned, found[1], name)
		}
	}
}

func TestWorkflows_MayDoOnlyWhatTheyMust(t *testing.T) {
	writers := map[string][]string{
		"release.yml/binaries": {"contents"}, "release.yml/images": {"packages"}, "release.yml/publish": {"contents", "packages"},
	}
	for name, w := range parsed(t) {
		require.NotNil(t, w.Permissions, "%s: permissions: {} at the top", name)
		require.Empty(t, w.Permissions, name)
		require.Contains(t, w.Concurrency, "group", name)
		require.NotContains(t, w.On, "pull_request_target", name)
		require.Equal(t, "bash", w.Defaults.Run["shell"], "%s: else a pipe hides a failure", name)
		for id, j := range w.Jobs {
			id = name + "/" + id
			require.NotEmpty(t, j.Permissions, "%s says nothing of permissions", id)
			require.Positive(t, j.Timeout, "%s has no timeout", id)
			var writes []string
			for what, how := range j.Permissions {
				if how != "read" {
					writes = append(writes, what)
				}
			}
			slices.Sort(writes)
			require.Equal(t, writers[id], writes, id)
		}
	}
}

func TestWorkflows_StepsKeepNoCredentialsAndPasteNothingIntoScripts(t *testing.T) {
	for name, w := range parsed(t) {
		for id, j := range w.Jobs {
			for _, s := range j.Steps {
				if strings.HasPrefix(s.Uses, "actions/checkout@") {
					require.Equal(t, false, s.With["persist-credentials"], "%s/%s", name, id)
				}
				require.NotContains(t, s.Run, "${{", "%s/%s: give it by a variable", name, id)
			}
		}
	}
}

func TestWorkflows_NameTheModulesOfTheTree(t *testing.T) {
	var modules []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(d.Name(), ".") && path != root
		switch {
		case err != nil:
			return err
		case d.IsDir() && (hidden || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.Name() == "go.mod":
			dir, err := filepath.Rel(root, filepath.Dir(path))
			modules = append(modules, filepath.ToSlash(dir))
			return err
		}
		return nil
	}))
	require.Contains(t, modules, ".")
	lists := 0
	for name, w := range parsed(t) {
		for id, j := range w.Jobs {
			if list := j.Strategy.Matrix.Module; list != nil {
				require.ElementsMatch(t, modules, list, "%s/%s", name, id)
				lists++
			}
		}
	}
	require.Equal(t, 2, lists, "the modules' tests, and their vulnerabilities")
}

func TestWorkflows_TakeTheGoOfTheModules(t *testing.T) {
	work, err := os.ReadFile(filepath.Join(root, "go.work"))
	require.NoError(t, err)
	minor := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(work)
	require.NotNil(t, minor)
	for name, w := range parsed(t) {
		for id, j := range w.Jobs {
			for _, s := range j.Steps {
				if strings.HasPrefix(s.Uses, "actions/setup-go@") {
					require.Equal(t, string(minor[1])+".x", s.With["go-version"], "%s/%s", name, id)
				}
			}
		}
	}
}

func TestNightly_FuzzesFiveMinutesAndKeepsCrashers(t *testing.T) {
	text := files(t)["nightly.yml"]
	require.Contains(t, text, "-fuzztime 5m")
	require.Contains(t, text, "govulncheck@v1.9.0")
	require.Regexp(t, `(?s)- if: failure\(\)\n\s+uses: actions/upload-artifact@.*testdata/fuzz/`, text)
}

func TestRelease_IsOfTheProxyForFourPlatforms(t *testing.T) {
	text := files(t)["release.yml"]
	require.Contains(t, text, `tags: ["ferryman/v*"]`)
	require.Contains(t, text, "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64")
	for _, part := range []string{"CGO_ENABLED: \"0\"", "GOWORK: \"off\"", "sha256sum", "docker build"} {
		require.Contains(t, text, part)
	}
}
