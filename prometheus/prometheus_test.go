package prometheus_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/Bunty9/ferryman/prometheus"
)

// native is the lab without containers on its usual ports.
var native = map[string][]prometheus.Target{
	"ferryman": {{Instance: "ferryman", Addr: "127.0.0.1:9090"}},
	"echo": {
		{Instance: "echo-a", Addr: "127.0.0.1:9101"},
		{Instance: "echo-b", Addr: "127.0.0.1:9102"},
		{Instance: "echo-c", Addr: "127.0.0.1:9103"},
	},
	"loadtest": {{Instance: "loadtest", Addr: "127.0.0.1:9104"}},
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(text)
}

func TestWrite_OfTheUsualPortsIsWhatIsCommitted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	require.NoError(t, prometheus.Write(dir, native))
	require.Equal(t, read(t, "prometheus.yml"), read(t, dir, "prometheus.yml"))
	for _, name := range []string{"recording.yml", "alerts.lab.yml"} {
		require.Equal(t, read(t, "rules", name), read(t, dir, "rules", name))
	}
	for _, job := range prometheus.Jobs() {
		require.Equal(t, read(t, "targets", "native", job+".yml"), read(t, dir, "targets", job+".yml"))
	}
}

func TestWrite_AgainReplacesTheTargetsAndLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, prometheus.Write(dir, native))
	require.NoError(t, prometheus.Write(dir, map[string][]prometheus.Target{"ferryman": {{Instance: "ferryman", Addr: "127.0.0.1:1"}}}))
	require.Contains(t, read(t, dir, "targets", "ferryman.yml"), `"127.0.0.1:1"`)
	require.Equal(t, "[]\n", read(t, dir, "targets", "echo.yml"))
	left, err := filepath.Glob(filepath.Join(dir, "*", "*.new"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestWrite_AJobThatIsNotScrapedIsAnError(t *testing.T) {
	err := prometheus.Write(t.TempDir(), map[string][]prometheus.Target{"nginx": nil})
	require.EqualError(t, err, `there is no job "nginx": there are echo, ferryman, loadtest`)
}

// Rules and dashboard know instances by name, so both modes have to have the same ones.
func TestTargets_BothModesHaveTheSameInstances(t *testing.T) {
	type group struct {
		Targets []string
		Labels  map[string]string
	}
	for _, job := range prometheus.Jobs() {
		var names [2][]string
		for i, mode := range []string{"docker", "native"} {
			var groups []group
			require.NoError(t, yaml.Unmarshal([]byte(read(t, "targets", mode, job+".yml")), &groups))
			for _, g := range groups {
				require.Len(t, g.Targets, 1)
				require.Len(t, g.Labels, 1)
				names[i] = append(names[i], g.Labels["instance"])
			}
		}
		require.NotEmpty(t, names[0])
		require.Equal(t, names[0], names[1], job)
	}
}
