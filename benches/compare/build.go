package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// findRoot is the nearest folder upwards that holds the workspace.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.work here or above: run this inside the repository")
		}
	}
}

// build makes the programs that the options do not name. What ships is built outside of the
// workspace, so that is what is measured.
func (b *bench) build(ctx context.Context) (echo string, err error) {
	b.programs.Ferryman, b.programs.Other, echo = b.o.ferryman, b.o.other, b.o.echo
	if b.programs.Ferryman == "" {
		b.programs.Ferryman = filepath.Join(b.dir, "ferryman")
		if err := goBuild(ctx, filepath.Join(b.root, "ferryman"), "./cmd/ferryman", b.programs.Ferryman); err != nil {
			return "", err
		}
	}
	if echo == "" {
		echo = filepath.Join(b.dir, "echo-upstream")
		if err := goBuild(ctx, filepath.Join(b.root, "echo-upstream"), ".", echo); err != nil {
			return "", err
		}
	}
	b.programs.Floor = filepath.Join(b.dir, "floor")
	source := filepath.Join(b.root, "benches", "floor", "floor.c")
	if err := command(ctx, b.root, nil, "cc", "-O2", "-o", b.programs.Floor, source); err != nil {
		b.logf("the relay that parses nothing is left out: %v", err)
	}
	err = absolute(&echo, &b.programs.Ferryman, &b.programs.Other)
	return echo, err
}

// absolute makes paths independent of the folder that a program is started in.
func absolute(paths ...*string) (err error) {
	for _, path := range paths {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return nil
}

func goBuild(ctx context.Context, module, pkg, binary string) error {
	return command(ctx, module, []string{"GOWORK=off", "CGO_ENABLED=0"}, "go", "build", "-trimpath", "-o", binary, pkg)
}

// command runs a program to its end; the error holds what it printed.
func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// commit names the tree that is measured: the last commit, with "+" where files differ from it.
func commit(ctx context.Context, root string) string {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	hash, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "unknown"
	}
	if changes, err := git("status", "--porcelain", "--untracked-files=no", "--", "ferryman", "echo-upstream", "loadtest", "benches"); err != nil || changes != "" {
		hash += "+"
	}
	return hash
}
