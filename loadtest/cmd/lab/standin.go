//go:build unix

package main

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// standIn is an image in the place of golang: this machine's Go, a shell, and the modules that the lab's
// programs need, as a file tree that Go takes for a proxy. Nothing is pulled or downloaded.
const standIn = "ferryman-lab/go-stand-in:local"

// importStandIn makes the image.
func (l *lab) importStandIn(ctx context.Context) error {
	files, err := l.standInFiles(ctx)
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(writeRoot(w, files)) }()
	args := []string{"import"}
	for _, change := range []string{
		"ENV PATH=/usr/local/go/bin:/bin", "ENV HOME=/root", "ENV GOPROXY=file:///modules", "ENV GOSUMDB=off", "ENV GOTOOLCHAIN=local",
		"LABEL io.ferryman.lab=stand-in",
	} {
		args = append(args, "--change", change)
	}
	cmd := exec.CommandContext(ctx, "docker", append(args, "-", standIn)...)
	cmd.Stdin = r
	out, err := cmd.CombinedOutput()
	_ = r.Close() // so that the writer ends if docker did before
	if err != nil {
		return fmt.Errorf("docker import: %w: %s", err, lastLine(string(out)))
	}
	return nil
}

// standInFiles maps names in the image to files of this machine.
func (l *lab) standInFiles(ctx context.Context) (map[string]string, error) {
	files := map[string]string{"bin/sh": "/bin/sh"}
	libraries, err := exec.CommandContext(ctx, "ldd", "/bin/sh").Output()
	if err != nil {
		return nil, fmt.Errorf("ldd /bin/sh: %w", err)
	}
	for _, lib := range regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1) {
		files[strings.TrimPrefix(lib, "/")] = lib
	}
	env, err := l.output(ctx, ".", "go env GOROOT GOMODCACHE")
	if err != nil {
		return nil, err
	}
	goroot, cache, _ := strings.Cut(strings.TrimSpace(env), "\n")
	for _, part := range []string{"VERSION", "go.env", "bin", "lib", "pkg/include", "pkg/tool/" + runtime.GOOS + "_" + runtime.GOARCH, "src"} {
		if err := gather(files, filepath.Join(goroot, part), "usr/local/go/"+part); err != nil {
			return nil, err
		}
	}
	proxy := filepath.Join(cache, "cache", "download")
	modules, err := l.moduleFiles(ctx)
	if err != nil {
		return nil, err
	}
	for _, file := range modules {
		inside, err := filepath.Rel(proxy, file)
		if err != nil || strings.HasPrefix(inside, "..") {
			return nil, fmt.Errorf("%s is not in the module cache", file)
		}
		files["modules/"+filepath.ToSlash(inside)] = file
	}
	return files, nil
}

// moduleFiles are what `go mod download` and `go build` read from a proxy in the three Dockerfiles. Tests
// and tools of the root module need a hundred modules more, which no image does.
func (l *lab) moduleFiles(ctx context.Context) ([]string, error) {
	const show = ` | grep -Ew '"(Info|GoMod|Zip)"' | cut -d'"' -f4`
	var files []string
	for _, x := range [][2]string{
		{"ferryman", `go mod download -json` + show},
		{"echo-upstream", `go mod download -json` + show},
		{".", `go mod download -json $(go list -deps -f '{{with .Module}}{{if .Version}}{{.Path}}@{{.Version}}{{end}}{{end}}' ./loadtest/cmd/loadtest | sort -u)` + show},
		{".", `go list -m -f '{{.GoMod}}' all | grep cache/download`},
		{"ferryman", `go list -m -f '{{.GoMod}}' all | grep cache/download`},
		{"echo-upstream", `go list -m -f '{{.GoMod}}' all | grep cache/download`},
	} {
		out, err := l.output(ctx, x[0], x[1])
		if err != nil {
			return nil, err
		}
		files = append(files, strings.Fields(out)...)
	}
	return files, nil
}

// output is what a line of shell prints in a folder of the repository, outside of the workspace.
func (l *lab) output(ctx context.Context, dir, line string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = filepath.Join(l.root, dir), append(os.Environ(), "GOWORK=off")
	cmd.Stderr = l.stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", line, err)
	}
	return string(out), nil
}

// gather adds a file, or all files below a folder but tests.
func gather(files map[string]string, from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && d.Name() == "testdata":
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files[filepath.ToSlash(filepath.Join(to, inside))] = name
		return nil
	})
}

// writeRoot writes a root file system.
func writeRoot(out io.Writer, files map[string]string) error {
	w := tar.NewWriter(out)
	for _, dir := range []string{"tmp/", "root/"} {
		if err := w.WriteHeader(&tar.Header{Name: dir, Mode: 0o1777, Typeflag: tar.TypeDir}); err != nil {
			return err
		}
	}
	for name, from := range files {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: int64(info.Mode().Perm()), Size: int64(len(content))}); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return w.Close()
}
