package labenv

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Images are names with tags that the engine has.
type Images struct{ Ferryman, Echo, Loadtest string }

// Env are the variables by which the compose files find the images.
func (i Images) Env() []string {
	return []string{"FERRYMAN_IMAGE=" + i.Ferryman, "ECHO_IMAGE=" + i.Echo, "LOADTEST_IMAGE=" + i.Loadtest}
}

// BuildImages builds the programs for the engine's processor and packs each into an image, unless the
// engine has one with the same content. Images that the environment names are taken as they are.
func BuildImages(ctx context.Context, root, dir string) (Images, error) {
	arch, err := EngineArch(ctx)
	if err != nil {
		return Images{}, err
	}
	bin, err := Build(ctx, root, filepath.Join(dir, "linux-"+arch), arch)
	if err != nil {
		return Images{}, err
	}
	var names []string
	for i, file := range []string{bin.Ferryman, bin.Echo, bin.Loadtest} {
		variable := []string{"FERRYMAN_IMAGE", "ECHO_IMAGE", "LOADTEST_IMAGE"}[i]
		name := os.Getenv(variable)
		if name == "" {
			if name, err = pack(ctx, root, programs[i], file); err != nil {
				return Images{}, err
			}
		}
		names = append(names, name)
	}
	return Images{Ferryman: names[0], Echo: names[1], Loadtest: names[2]}, nil
}

// pack makes the image of one binary. Its tag is the hash of what is in it.
func pack(ctx context.Context, root string, p program, file string) (string, error) {
	binary, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	recipe, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.dockerfile)))
	if err != nil {
		return "", err
	}
	last, err := LastStage(string(recipe))
	if err != nil {
		return "", fmt.Errorf("%s: %w", p.dockerfile, err)
	}
	sum := sha256.New()
	sum.Write([]byte(last))
	sum.Write(binary)
	tag := "ferryman-lab/" + p.Name + ":" + hex.EncodeToString(sum.Sum(nil))[:16]
	if _, err := docker(ctx, nil, "image", "inspect", tag); err == nil {
		return tag, nil
	}
	archive, err := buildContext(last, p.Name, binary)
	if err != nil {
		return "", err
	}
	_, err = docker(ctx, archive, "build", "--quiet", "--label", Label+"=image", "--tag", tag, "-")
	return tag, err
}

// LastStage is the final stage of a Dockerfile, with the binary taken from the context instead of from the
// stage that builds it: one recipe for people with only Docker, and for those with Go.
func LastStage(dockerfile string) (string, error) {
	at := strings.LastIndex(dockerfile, "\nFROM scratch\n")
	if at < 0 {
		return "", errors.New("no final stage FROM scratch")
	}
	last := dockerfile[at+1:]
	if strings.Count(last, "COPY --from=build /") != 1 || strings.Count(last, "COPY") != 1 {
		return "", errors.New("the final stage must copy exactly one file, from the stage build")
	}
	return strings.Replace(last, "COPY --from=build /", "COPY ", 1), nil
}

// buildContext is a tar archive of the Dockerfile and the binary.
func buildContext(dockerfile, name string, binary []byte) (*bytes.Buffer, error) {
	b := &bytes.Buffer{}
	w := tar.NewWriter(b)
	for _, f := range []struct {
		name    string
		mode    int64
		content []byte
	}{{"Dockerfile", 0o644, []byte(dockerfile)}, {name, 0o755, binary}} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	return b, w.Close()
}

// EngineArch is the processor of the engine's machine as Go calls it. An error says that there is no engine.
func EngineArch(ctx context.Context) (string, error) {
	out, err := docker(ctx, nil, "version", "--format", "{{.Server.Arch}}")
	if err != nil {
		return "", fmt.Errorf("no Docker engine: %w: start it, or use `task demo`, which needs none", err)
	}
	return strings.TrimSpace(out), nil
}

// HasImage reports whether the engine has an image.
func HasImage(ctx context.Context, name string) bool {
	_, err := docker(ctx, nil, "image", "inspect", name)
	return err == nil
}

// docker runs the client of the engine.
func docker(ctx context.Context, stdin *bytes.Buffer, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if stdin != nil {
		cmd.Stdin = stdin
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Sweep removes what list finds with the lab's label, such as `ps --all --quiet`, and returns how many there
// were.
func Sweep(ctx context.Context, list, remove []string) (int, error) {
	out, err := docker(ctx, nil, append(slices.Clip(list), "--filter", "label="+Label)...)
	if err != nil {
		return 0, err
	}
	ids := strings.Fields(out)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 {
		return 0, nil
	}
	_, err = docker(ctx, nil, append(slices.Clip(remove), ids...)...)
	return len(ids), err
}
