//go:build integration

package suite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// rig is a network with ferryman and three echoes on it.
type rig struct {
	net    string
	dir    string // mounted: ferryman.toml is in it
	proxy  node
	echoes map[string]node // a, b and c
}

// node is a container that is called by a name on the network.
type node struct {
	name string
	*testcontainers.DockerContainer
}

var suiteLabel = map[string]string{labenv.Label: "suite"}

// newRig starts everything with a configuration; change edits the lab's.
func newRig(t *testing.T, change func(string) string) *rig {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "compose", "ferryman", "ferryman.toml"))
	require.NoError(t, err)
	r := &rig{dir: t.TempDir(), echoes: map[string]node{}}
	require.NoError(t, os.Chmod(r.dir, 0o755)) // ferryman is another user in there
	r.write(t, "ferryman.toml", change(string(text)))

	n, err := tcnetwork.New(t.Context(), tcnetwork.WithLabels(suiteLabel))
	testcontainers.CleanupNetwork(t, n)
	require.NoError(t, err)
	r.net = n.Name
	for _, name := range labenv.Upstreams {
		r.echoes[name] = r.echo(t, "echo-"+name)
	}
	r.proxy = r.start(t, "ferryman", images.Ferryman, []string{"8080/tcp", "9090/tcp"}, wait.ForHTTP("/readyz").WithPort("9090/tcp"),
		"--config", "/etc/ferryman/ferryman.toml")
	for _, name := range labenv.Upstreams {
		eventually(t, 20*time.Second, "route /svc-"+name, func(ctx context.Context) error {
			return labenv.Answers(ctx, r.url(t, "/svc-"+name+"/echo"))
		})
	}
	return r
}

func asItIs(text string) string { return text }

func (r *rig) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644))
}

func (r *rig) echo(t *testing.T, name string) node {
	t.Helper()
	return r.start(t, name, images.Echo, []string{"8000/tcp", "8001/tcp"}, wait.ForHTTP("/healthz").WithPort("8001/tcp"), "--instance", name)
}

// start runs a container until the test ends. A failed test shows the end of what it printed.
func (r *rig) start(t *testing.T, name, image string, ports []string, ready wait.Strategy, args ...string) node {
	t.Helper()
	c, err := testcontainers.Run(t.Context(), image,
		testcontainers.WithLabels(suiteLabel), testcontainers.WithExposedPorts(ports...), testcontainers.WithCmd(args...),
		tcnetwork.WithNetworkName([]string{name}, r.net), testcontainers.WithWaitStrategyAndDeadline(time.Minute, ready),
		testcontainers.WithConfigModifier(func(c *container.Config) {
			c.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}} // an exec each second is a load of its own
		}),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			h.ReadonlyRootfs, h.CapDrop = true, []string{"ALL"}
			if name == "ferryman" {
				h.Binds = []string{r.dir + ":/etc/ferryman:ro"}
			}
		}))
	testcontainers.CleanupContainer(t, c, testcontainers.StopTimeout(0))
	require.NoError(t, err, name)
	n := node{name, c}
	t.Cleanup(func() {
		_, _ = engine.ContainerUnpause(context.Background(), n.GetContainerID(), client.ContainerUnpauseOptions{}) // else it cannot be removed
		if t.Failed() {
			t.Logf("%s printed at last:\n%s", name, n.printed(context.Background(), "50"))
		}
	})
	return n
}

// printed is what a container wrote on both outputs.
func (n node) printed(ctx context.Context, tail string) string {
	stdout, stderr, err := n.outputs(ctx, tail)
	if err != nil {
		return err.Error()
	}
	return stdout[max(0, len(stdout)-2000):] + stderr
}

func (n node) outputs(ctx context.Context, tail string) (stdout, stderr string, err error) {
	raw, err := engine.ContainerLogs(ctx, n.GetContainerID(), client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: tail})
	if err != nil {
		return "", "", err
	}
	defer raw.Close()
	var out, errs bytes.Buffer
	_, err = stdcopy.StdCopy(&out, &errs, raw)
	return out.String(), errs.String(), err
}

// at is the URL of a port as it is published now: a restart changes it.
func (n node) at(ctx context.Context, port string) (string, error) {
	p, err := n.MappedPort(ctx, port)
	if err != nil {
		return "", fmt.Errorf("%s: %w", n.name, err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", p.Num()), nil
}

// url is ferryman's.
func (r *rig) url(t *testing.T, path string) string {
	t.Helper()
	base, err := r.proxy.at(t.Context(), "8080/tcp")
	require.NoError(t, err)
	return base + path
}

func (r *rig) metrics(t *testing.T) labenv.Page {
	t.Helper()
	return n0(t, r.proxy, "9090/tcp")
}

// n0 reads the metrics of a container.
func n0(t *testing.T, n node, port string) labenv.Page {
	t.Helper()
	base, err := n.at(t.Context(), port)
	require.NoError(t, err)
	page, err := labenv.ReadPage(t.Context(), base+"/metrics")
	require.NoError(t, err, n.name)
	return page
}

// served is how many requests beside health checks an echo has answered.
func (n node) served(t *testing.T) float64 {
	t.Helper()
	page := n0(t, n, "8001/tcp")
	return page.Sum("echo_requests_total") - page.Sum("echo_requests_total", `endpoint="health"`)
}

// fault sets an echo's fault; "" heals.
func (n node) fault(t *testing.T, body string) {
	t.Helper()
	method := "PUT"
	if body == "" {
		method = "DELETE"
	}
	base, err := n.at(t.Context(), "8001/tcp")
	require.NoError(t, err)
	status, text, err := labenv.Ask(t.Context(), method, base+"/fault", body)
	require.NoError(t, err)
	require.Equal(t, 200, status, text)
}

// The engine's own faults.
func (n node) kill(t *testing.T) {
	t.Helper()
	_, err := engine.ContainerKill(t.Context(), n.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
	require.NoError(t, err)
}

func (n node) restart(t *testing.T) {
	t.Helper()
	_, err := engine.ContainerStart(t.Context(), n.GetContainerID(), client.ContainerStartOptions{})
	require.NoError(t, err)
}

func (n node) pause(t *testing.T) {
	t.Helper()
	_, err := engine.ContainerPause(t.Context(), n.GetContainerID(), client.ContainerPauseOptions{})
	require.NoError(t, err)
}

func (n node) unpause(t *testing.T) {
	t.Helper()
	_, err := engine.ContainerUnpause(t.Context(), n.GetContainerID(), client.ContainerUnpauseOptions{})
	require.NoError(t, err)
}

func (n node) disconnect(t *testing.T, net string) {
	t.Helper()
	_, err := engine.NetworkDisconnect(t.Context(), net, client.NetworkDisconnectOptions{Container: n.GetContainerID(), Force: true})
	require.NoError(t, err)
}

// connect must repeat the name, which is not remembered.
func (n node) connect(t *testing.T, net string) {
	t.Helper()
	_, err := engine.NetworkConnect(t.Context(), net, client.NetworkConnectOptions{
		Container: n.GetContainerID(), EndpointConfig: &network.EndpointSettings{Aliases: []string{n.name}},
	})
	require.NoError(t, err)
}

// address is the one on the rig's network.
func (n node) address(t *testing.T, net string) string {
	t.Helper()
	c, err := engine.ContainerInspect(t.Context(), n.GetContainerID(), client.ContainerInspectOptions{})
	require.NoError(t, err)
	return c.Container.NetworkSettings.Networks[net].IPAddress.String()
}

// eventually polls with a deadline. Its message says what was awaited and what was the matter at last.
func eventually(t *testing.T, limit time.Duration, what string, ready func(context.Context) error) {
	t.Helper()
	require.NoError(t, labenv.Until(t.Context(), limit, what, ready))
}

// upstream is how ferryman's metrics call an echo.
func upstream(name string) string { return "echo-" + strings.TrimPrefix(name, "echo-") + ":8000" }
