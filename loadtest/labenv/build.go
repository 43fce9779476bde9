package labenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binaries are files. An empty name is a program that is not there.
type Binaries struct{ Ferryman, Echo, Loadtest string }

// program is how one of the lab's programs is built and packed.
type program struct {
	Name       string
	module     string // folder, from the root
	pkg        string
	dockerfile string
}

var programs = []program{
	{"ferryman", "ferryman", "./cmd/ferryman", "ferryman/Dockerfile"},
	{"echo-upstream", "echo-upstream", ".", "echo-upstream/Dockerfile"},
	{"loadtest", ".", "./loadtest/cmd/loadtest", "loadtest/Dockerfile"},
}

// Build makes the three programs in dir as they ship: static, each by the requirements of its own module.
// An empty goarch is this machine's; another one means Linux for that processor.
func Build(ctx context.Context, root, dir, goarch string) (Binaries, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Binaries{}, err
	}
	var made []string
	for _, p := range programs {
		out := filepath.Join(dir, p.Name)
		if err := p.build(ctx, root, out, goarch); err != nil {
			return Binaries{}, err
		}
		made = append(made, out)
	}
	return Binaries{Ferryman: made[0], Echo: made[1], Loadtest: made[2]}, nil
}

func (p program) build(ctx context.Context, root, out, goarch string) error {
	// Not stamped with the commit: the same source makes the same bytes, hence the same image.
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, p.pkg}
	env := []string{"GOWORK=off", "CGO_ENABLED=0", "GOFLAGS="}
	if goarch != "" {
		env = append(env, "GOOS=linux", "GOARCH="+goarch)
	}
	_, err := run(ctx, filepath.Join(root, p.module), env, "go", args...)
	return err
}

// run runs a program to its end and returns what it printed on standard output; an error holds the rest.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String())
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args[:min(len(args), 2)], " "), err, said)
	}
	return stdout.String(), nil
}
