// Package deploy holds what one needs to run ferryman on Fly and on Kubernetes, and no code. Its tests read
// the two files strictly, an unknown or doubled key is an error, and compare them with what ferryman itself
// says: `ferryman -h` for the defaults, its source for the drain, `ferryman check` for the routes.
package deploy

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const module = "../../ferryman" // folder of the proxy

// binary is the proxy, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "deploy")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "ferryman")
	build := exec.Command("go", "build", "-trimpath", "-o", binary, "./cmd/ferryman")
	build.Dir, build.Env = module, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the proxy: %v: %s\n", err, out)
		return 1
	}
	return m.Run()
}

// port is the default of a flag that takes an address, as the help prints it.
func port(t *testing.T, flag string) int {
	t.Helper()
	help, err := exec.Command(binary, "-h").Output()
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^\s*--` + flag + `\s.*\(default (\S+)\)$`).FindSubmatch(help)
	require.NotNil(t, found, "the help has no default for --%s:\n%s", flag, help)
	host, number, err := net.SplitHostPort(string(found[1]))
	require.NoError(t, err)
	require.Equal(t, "0.0.0.0", host, "--%s must be reachable from outside of the container", flag)
	n, err := strconv.Atoi(number)
	require.NoError(t, err)
	return n
}

// drain is how long requests in flight have after the first signal.
func drain(t *testing.T) time.Duration {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(module, "cmd/ferryman/serve.go"))
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^const drainLimit = (\d+) \* time\.Second$`).FindSubmatch(source)
	require.NotNil(t, found, "serve.go has no drainLimit in seconds")
	n, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return time.Duration(n) * time.Second
}

// variable is the environment variable of a flag, as the help prints it.
func variable(t *testing.T, flag string) string {
	t.Helper()
	help, err := exec.Command(binary, "-h").Output()
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^\s*--` + flag + `\s+(FERRYMAN_\w+)\s`).FindSubmatch(help)
	require.NotNil(t, found, "the help has no variable for --%s:\n%s", flag, help)
	return string(found[1])
}

// accepted has the proxy judge a configuration.
func accepted(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ferryman.toml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.Command(binary, "check", "--config", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PREFIX")
}

// read is a file of this folder.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

func TestImage_HasTheDefaultPortsAndTheUserOfTheManifests(t *testing.T) {
	dockerfile := read(t, filepath.Join(module, "Dockerfile"))
	require.Contains(t, dockerfile, fmt.Sprintf("\nEXPOSE %d %d\n", port(t, "bind"), port(t, "metrics-bind")))
	require.Contains(t, dockerfile, fmt.Sprintf("\nUSER %d:%[1]d\n", nobody))
}

// The pages quote the files: a name, a number or a command that changes must change there too.
func TestPages_NameWhatTheFilesHave(t *testing.T) {
	f := readFly(t)
	for _, text := range []string{
		f.PrimaryRegion, "iad", strconv.Itoa(f.KillTimeout), f.Checks["ready"].Path, "fly deploy --config ../docs/deploy/fly.toml",
		"ferryman.toml", "What was not tried",
	} {
		require.Contains(t, read(t, "fly.md"), text, "fly.md")
	}
	for _, text := range []string{
		"fly.toml", "fly.md", "kubernetes.yaml", "kubectl apply -f docs/deploy/kubernetes.yaml", "subPath", "/readyz", "/healthz",
		"ferryman check", "What was not tried", strconv.Itoa(port(t, "bind")), strconv.Itoa(port(t, "metrics-bind")),
	} {
		require.Contains(t, read(t, "README.md"), text, "README.md")
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, page := range []string{"README.md", "fly.md"} {
		for _, found := range link.FindAllStringSubmatch(read(t, page), -1) {
			_, err := os.Stat(strings.TrimSuffix(found[1], "/"))
			require.NoError(t, err, "%s links to %s", page, found[1])
		}
	}
}
