//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// recipes are the Dockerfiles, with what shows that the program in the image runs.
var recipes = []struct{ name, context, file, try string }{
	{"ferryman", "ferryman", "ferryman/Dockerfile", "version"},
	{"echo-upstream", "echo-upstream", "echo-upstream/Dockerfile", "--help"},
	{"loadtest", ".", "loadtest/Dockerfile", "-h"},
}

// dockerfiles builds each Dockerfile as people with only Docker do, but for the image with Go in it, which
// cannot be pulled everywhere.
func (l *lab) dockerfiles(ctx context.Context, _ []string) (err error) {
	if _, err := labenv.EngineArch(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.removeStandIn(context.WithoutCancel(ctx))) }()
	begun := time.Now()
	if err := l.importStandIn(ctx); err != nil {
		return err
	}
	l.say("stand-in for the Go image: %s", time.Since(begun).Round(time.Second))
	var rows []row
	for _, r := range recipes {
		begun := time.Now()
		size, err := l.buildRecipe(ctx, r.name, r.context, r.file, r.try)
		line := row{r.file, fmt.Sprintf("%.1f MB in %s", float64(size)/1e6, time.Since(begun).Round(time.Second)), "< 20 MB", judge(size < 20e6)}
		if err != nil {
			line.measured, line.verdict = err.Error(), fail
		}
		rows = append(rows, line)
	}
	return l.table(rows, false)
}

func (l *lab) buildRecipe(ctx context.Context, name, folder, file, try string) (size int64, err error) {
	tag := "ferryman-lab/" + name + ":dockerfile"
	if err := l.docker(ctx, "build", "--build-arg", "GO_IMAGE="+standIn, "--tag", tag, "--file", file, folder); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.docker(context.WithoutCancel(ctx), "image", "rm", "--force", tag)) }()
	if err := l.docker(ctx, "run", "--rm", "--read-only", "--network", "none", tag, try); err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, "docker", "image", "inspect", "--format", "{{.Size}} {{.Config.User}}", tag).Output()
	if err != nil {
		return 0, err
	}
	var user string
	if _, err := fmt.Sscan(string(out), &size, &user); err != nil || user != "65532:65532" {
		return size, fmt.Errorf("size and user are %q", strings.TrimSpace(string(out)))
	}
	return size, nil
}

// removeStandIn also removes the stages that were built upon it, which have its label.
func (l *lab) removeStandIn(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "docker", "image", "ls", "--quiet", "--filter", "label="+labenv.Label+"=stand-in").Output()
	if err != nil || len(out) == 0 {
		return err
	}
	return l.docker(ctx, append([]string{"image", "rm", "--force"}, strings.Fields(string(out))...)...)
}

func (l *lab) docker(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Dir = l.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("docker %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
