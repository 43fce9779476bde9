package prometheus_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/prometheus"
)

// promtool runs promtool, or the one that PROMTOOL names. Where there is none the test is skipped, unless
// LAB_REQUIRE_PROMETHEUS=1 asks for it.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	bin := os.Getenv("PROMTOOL")
	if bin == "" {
		bin = "promtool"
	}
	if _, err := exec.LookPath(bin); err != nil {
		if os.Getenv("LAB_REQUIRE_PROMETHEUS") == "1" {
			require.NoError(t, err, "install Prometheus, or name its promtool in PROMTOOL")
		}
		t.Skip("no promtool here, so rules are not tested: install Prometheus, or name its promtool in PROMTOOL")
	}
	out, err := exec.Command(bin, args...).CombinedOutput()
	require.NoError(t, err, "promtool %v\n%s", args, out)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, names, pattern)
	return names
}

func TestConfig_PromtoolAcceptsItInBothModes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, prometheus.Write(dir, native))
	promtool(t, "check", "config", filepath.Join(dir, "prometheus.yml"))
	for _, name := range glob(t, "targets/docker/*.yml") {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "targets", filepath.Base(name)), []byte(read(t, name)), 0o644))
	}
	promtool(t, "check", "config", filepath.Join(dir, "prometheus.yml"))
}

func TestRules_PromtoolAcceptsThem(t *testing.T) {
	promtool(t, append([]string{"check", "rules"}, glob(t, "rules/*.yml")...)...)
}

func TestRules_AlertsFireAndResolveAsTheirTestsSay(t *testing.T) {
	for _, name := range glob(t, "tests/*.yml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			promtool(t, "test", "rules", name)
		})
	}
}
