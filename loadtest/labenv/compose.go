//go:build unix

package labenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Compose is a project of containers.
type Compose struct {
	Flavour []string `json:"flavour"` // docker compose, or docker-compose
	Root    string   `json:"root"`
	Project string   `json:"project"`
	Files   []string `json:"files"` // in compose/
	Env     []string `json:"env"`   // images and ports
}

// usualFiles is how many open files the compose files ask for.
const usualFiles = 65536

// FilesEnv is the variable with the number of open files that the engine can grant, where that is less than
// usual and nobody has set it: an engine without privileges cannot raise its own limit. It is taken to be
// that of this process.
func FilesEnv() []string {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	if err != nil || limit.Max >= usualFiles || os.Getenv("LAB_NOFILE") != "" {
		return nil
	}
	return []string{"LAB_NOFILE=" + strconv.FormatUint(limit.Max, 10)}
}

// ComposeFlavour finds what there is: the plugin of the client, or the older program.
func ComposeFlavour(ctx context.Context) ([]string, error) {
	for _, f := range ComposeFlavours {
		if _, err := run(ctx, "", nil, f[0], append(f[1:len(f):len(f)], "version")...); err == nil {
			return f, nil
		}
	}
	return nil, errors.New("neither `docker compose` nor `docker-compose` is here: install the package docker-compose-plugin or docker-compose")
}

// ComposeFlavours are the programs that the files are valid for, the better one first.
var ComposeFlavours = [][]string{{"docker", "compose"}, {"docker-compose"}}

// Command is compose with the project's files and environment, ready to run.
func (c *Compose) Command(ctx context.Context, args ...string) *exec.Cmd {
	all := append(c.Flavour[1:len(c.Flavour):len(c.Flavour)], "--project-name", c.Project)
	for _, f := range c.Files {
		all = append(all, "--file", filepath.Join("compose", f))
	}
	cmd := exec.CommandContext(ctx, c.Flavour[0], append(all, args...)...)
	cmd.Dir, cmd.Env = c.Root, append(os.Environ(), c.Env...)
	return cmd
}

func (c *Compose) run(ctx context.Context, args ...string) error {
	out, err := c.Command(ctx, args...).CombinedOutput()
	if err != nil {
		said := strings.TrimSpace(string(out))
		return fmt.Errorf("%s %s: %w: %s", strings.Join(c.Flavour, " "), args[0], err, said[max(0, len(said)-2000):])
	}
	return nil
}

// Down removes containers, networks and volumes.
func (c *Compose) Down(ctx context.Context) error {
	// A paused container can be killed but not stopped.
	for _, name := range Upstreams {
		if id, err := c.Container(ctx, "echo-"+name); err == nil {
			_, _ = docker(ctx, nil, "unpause", id) // an error: it was not paused
		}
	}
	return c.run(ctx, "down", "--volumes", "--remove-orphans", "--timeout", "5")
}

// Container finds the container of a service by its labels: names differ between the flavours.
func (c *Compose) Container(ctx context.Context, service string) (string, error) {
	out, err := docker(ctx, nil, "ps", "--all", "--quiet", "--no-trunc", "--filter", "label=com.docker.compose.project="+c.Project,
		"--filter", "label=com.docker.compose.service="+service, "--filter", "label=com.docker.compose.oneoff=False")
	if err != nil {
		return "", err
	}
	ids := strings.Fields(out)
	if len(ids) != 1 {
		return "", fmt.Errorf("%d containers of the service %s: run `task up`", len(ids), service)
	}
	return ids[0], nil
}

// StartCompose brings the containers of c up and returns when the lab answers. If it cannot, nothing stays
// behind.
func StartCompose(ctx context.Context, c Compose, p Ports) (*State, error) {
	s := &State{
		Mode: ModeCompose, Dir: filepath.Join(c.Root, "compose", "ferryman"), Started: time.Now().UTC().Truncate(time.Second),
		Proxy: url(p.Proxy), Metrics: url(p.Metrics), Compose: &c,
	}
	if own := lookup(c.Env, "LAB_CONFIG_DIR"); own != "" {
		s.Dir = own
	}
	s.Config = filepath.Join(s.Dir, "ferryman.toml")
	c.Env = append(slices.Clip(c.Env), FilesEnv()...)
	for i, name := range Upstreams {
		s.Echoes = append(s.Echoes, Echo{Name: name, Upstream: "echo-" + name + ":8000", Admin: url(p.Admin[i])})
	}
	for _, f := range c.Files {
		if f == "observability.yml" {
			s.Prometheus, s.Grafana = url(p.Prometheus), url(p.Grafana)
		}
	}
	err := c.run(ctx, "up", "--detach", "--no-build")
	if err == nil {
		err = s.Ready(ctx, readyLimit)
	}
	if err != nil {
		return nil, errors.Join(err, s.End(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func lookup(env []string, name string) string {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return os.Getenv(name)
}
