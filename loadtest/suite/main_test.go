//go:build integration

package suite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// What all tests share: it is made once and only read.
var (
	images labenv.Images
	engine *client.Client
	root   string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx := context.Background()
	if _, err := labenv.EngineArch(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if os.Getenv("LAB_REQUIRE_DOCKER") == "1" {
			return 1
		}
		fmt.Fprintln(os.Stderr, "the fault suite was NOT run; LAB_REQUIRE_DOCKER=1 makes this a failure")
		return 0
	}
	if err := prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		return 1
	}
	return m.Run()
}

// prepare comes before the first call of testcontainers, which reads its settings once.
func prepare(ctx context.Context) (err error) {
	if !reaper(ctx) {
		if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
			return err
		}
	}
	// Some machines look like a container from the inside; the address of a gateway would then be taken for
	// the engine's host.
	if host := os.Getenv("DOCKER_HOST"); os.Getenv("TESTCONTAINERS_HOST_OVERRIDE") == "" && (host == "" || strings.HasPrefix(host, "unix://")) {
		if err := os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1"); err != nil {
			return err
		}
	}
	if os.Getenv("LAB_DEBUG") == "" {
		tclog.SetDefault(quiet{})
	}
	if root, err = labenv.Root(); err != nil {
		return err
	}
	if engine, err = client.New(client.FromEnv); err != nil {
		return err
	}
	if err := sweep(ctx); err != nil {
		return err
	}
	images, err = labenv.BuildImages(ctx, root, filepath.Join(labenv.Dir(root), "bin"))
	return err
}

// quiet is a logger for a library that tells of every step of every container.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// reaper reports whether the image that removes left-overs is here or can be had.
func reaper(ctx context.Context) bool {
	image := testcontainers.ReaperDefaultImage //nolint:staticcheck // nothing else tells which image it will be
	if labenv.HasImage(ctx, image) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return exec.CommandContext(ctx, "docker", "pull", "--quiet", image).Run() == nil
}

// sweep removes what a run that was killed left behind.
func sweep(ctx context.Context) error {
	old := client.Filters{}.Add("label", labenv.Label+"=suite")
	list, err := engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: old})
	if err != nil {
		return err
	}
	for _, c := range list.Items {
		if _, err := engine.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			return err
		}
	}
	networks, err := engine.NetworkList(ctx, client.NetworkListOptions{Filters: old})
	if err != nil {
		return err
	}
	for _, n := range networks.Items {
		if _, err := engine.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{}); err != nil {
			return err
		}
	}
	return nil
}
