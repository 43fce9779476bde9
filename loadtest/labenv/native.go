package labenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/Bunty9/ferryman/prometheus"
)

// Native says how a lab of processes is to be.
type Native struct {
	Dir        string // for its configuration and logs
	Binaries   Binaries
	Ports      Ports
	Prometheus string // its binary; "": none
}

// readyLimit is generous, for machines that are busy compiling.
const readyLimit = time.Minute

// FindPrometheus is the binary that PROMETHEUS_BIN names, or the one in the path; "" where there is none.
func FindPrometheus() string {
	if bin := os.Getenv("PROMETHEUS_BIN"); bin != "" {
		return bin
	}
	bin, _ := exec.LookPath("prometheus")
	return bin
}

// StartNative starts the lab as processes and returns when it answers. If it cannot, nothing stays behind.
func StartNative(ctx context.Context, root string, n Native) (*State, error) {
	dir, err := filepath.Abs(n.Dir)
	if err != nil {
		return nil, err
	}
	s := &State{
		Mode: ModeNative, Dir: dir, Started: time.Now().UTC().Truncate(time.Second), Proxy: url(n.Ports.Proxy),
		Metrics: url(n.Ports.Metrics), Config: filepath.Join(dir, "config", "ferryman.toml"), Loadtest: n.Binaries.Loadtest,
	}
	for i, name := range Upstreams {
		s.Echoes = append(s.Echoes, Echo{
			Name: name, Upstream: addr(n.Ports.Data[i]), Admin: url(n.Ports.Admin[i]), Data: url(n.Ports.Data[i]),
		})
	}
	if err := s.startNative(ctx, root, n); err != nil {
		return nil, errors.Join(err, s.End(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *State) startNative(ctx context.Context, root string, n Native) error {
	if err := os.MkdirAll(filepath.Join(s.Dir, "logs"), 0o755); err != nil {
		return err
	}
	if err := s.configure(root); err != nil {
		return err
	}
	for i, e := range s.Echoes {
		err := s.launch("echo-"+e.Name, n.Binaries.Echo, "--data-bind", addr(n.Ports.Data[i]), "--admin-bind", addr(n.Ports.Admin[i]),
			"--instance", "echo-"+e.Name)
		if err != nil {
			return err
		}
	}
	err := s.launch("ferryman", n.Binaries.Ferryman, "--config", s.Config, "--bind", addr(n.Ports.Proxy),
		"--metrics-bind", addr(n.Ports.Metrics), "--log-format", "text", "--log-level", "info")
	if err != nil {
		return err
	}
	if err := s.startPrometheus(n); err != nil {
		return err
	}
	return s.Ready(ctx, readyLimit)
}

// launch starts a process and notes it down.
func (s *State) launch(name string, args ...string) error {
	p := Process{Name: name, Args: args, Log: filepath.Join(s.Dir, "logs", name+".log")}
	if err := os.WriteFile(p.Log, nil, 0o644); err != nil {
		return err
	}
	if err := p.launch(); err != nil {
		return err
	}
	s.Processes = append(s.Processes, p)
	return nil
}

// configure writes the configuration of the containers, with the addresses of the processes.
func (s *State) configure(root string) error {
	text, err := os.ReadFile(filepath.Join(root, "compose", "ferryman", "ferryman.toml"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.Config), 0o755); err != nil {
		return err
	}
	return os.WriteFile(s.Config, []byte(s.Localized(string(text))), 0o644)
}

// Localized puts the addresses of this lab's upstreams in a configuration that names those of the
// containers, such as echo-a:8000.
func (s *State) Localized(config string) string {
	for _, e := range s.Echoes {
		config = strings.ReplaceAll(config, "echo-"+e.Name+":8000", e.Upstream)
	}
	return config
}

// startPrometheus starts it with the lab's rules, where there is one.
func (s *State) startPrometheus(n Native) error {
	if n.Prometheus == "" {
		return nil
	}
	dir := filepath.Join(s.Dir, "prometheus")
	jobs := map[string][]prometheus.Target{
		"ferryman": {{Instance: "ferryman", Addr: addr(n.Ports.Metrics)}},
		"loadtest": {{Instance: "loadtest", Addr: addr(LoadtestPort)}},
	}
	for i, name := range Upstreams {
		jobs["echo"] = append(jobs["echo"], prometheus.Target{Instance: "echo-" + name, Addr: addr(n.Ports.Admin[i])})
	}
	if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil { // a former lab's series would mislead
		return err
	}
	if err := prometheus.Write(dir, jobs); err != nil {
		return fmt.Errorf("write Prometheus' configuration: %w", err)
	}
	flags := prometheus.Flags(dir, addr(n.Ports.Prometheus))
	if err := s.launch("prometheus", append([]string{n.Prometheus}, flags...)...); err != nil {
		return err
	}
	s.Prometheus = url(n.Ports.Prometheus)
	return nil
}

// LoadtestPort is where a generator on this machine shows its metrics.
const LoadtestPort = 9104

// Memory is the resident set of a process in bytes; false where the system does not tell.
func (p Process) Memory() (int64, bool) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
