// Package prometheus is the lab's Prometheus configuration: it lays the files of this folder out, with the
// targets of one lab, as a directory that a Prometheus can be started on. It starts nothing.
//
//	err := prometheus.Write(dir, map[string][]prometheus.Target{
//		"ferryman": {{Instance: "ferryman", Addr: "127.0.0.1:9090"}},
//		"echo":     {{Instance: "echo-a", Addr: "127.0.0.1:9101"}},
//	})
//	cmd := exec.Command("prometheus", prometheus.Flags(dir, "127.0.0.1:9091")...)
package prometheus

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed prometheus.yml rules/*.yml
var files embed.FS

// Jobs are the jobs of prometheus.yml.
func Jobs() []string { return []string{"echo", "ferryman", "loadtest"} }

// Target is a process that is scraped. Instance is how rules and dashboard call it, in both modes alike;
// Addr is the host:port of its metrics.
type Target struct{ Instance, Addr string }

// Write fills dir, which it creates where there is none. A job without targets is scraped nowhere. It may
// be called again while a Prometheus runs on dir: new targets are seen at once, new rules after a SIGHUP.
func Write(dir string, jobs map[string][]Target) error {
	for job := range jobs {
		if !slices.Contains(Jobs(), job) {
			return fmt.Errorf("there is no job %q: there are %s", job, strings.Join(Jobs(), ", "))
		}
	}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		return replace(filepath.Join(dir, filepath.FromSlash(name)), content)
	})
	if err != nil {
		return err
	}
	for _, job := range Jobs() {
		if err := replace(filepath.Join(dir, "targets", job+".yml"), discovery(jobs[job])); err != nil {
			return err
		}
	}
	return nil
}

// discovery is a file for file_sd.
func discovery(targets []Target) []byte {
	if len(targets) == 0 {
		return []byte("[]\n")
	}
	var b strings.Builder
	for _, t := range targets {
		fmt.Fprintf(&b, "- targets: [%q]\n  labels: {instance: %s}\n", t.Addr, t.Instance)
	}
	return []byte(b.String())
}

// replace writes aside and renames, as a Prometheus may be reading.
func replace(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	aside := name + ".new"
	if err := os.WriteFile(aside, content, 0o644); err != nil {
		return err
	}
	return os.Rename(aside, name)
}

// Flags are the arguments of a prometheus on dir that listens on addr and keeps three hours of data within dir, more
// than the longest window of the rules.
func Flags(dir, addr string) []string {
	return []string{
		"--config.file=" + filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path=" + filepath.Join(dir, "data"),
		"--storage.tsdb.retention.time=3h",
		"--web.listen-address=" + addr,
	}
}
