package redteam

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Target is a ferryman to attack: a binary, and how it is run.
type Target struct {
	Binary string
	Engine string // "loops" or "goroutines"; empty: as ferryman chooses
	Self   string // this program, which is a bystander when asked for one
}

// process is a ferryman that runs.
type process struct {
	cmd   *exec.Cmd
	addr  string // of the clients' listener
	dir   string // with its configuration, its log and its certificate
	ended chan error
}

const (
	startLimit = 20 * time.Second // generous: a machine may be busy
	stopLimit  = 15 * time.Second // nothing is in flight any more by then
)

// started is the line that tells the addresses.
var started = regexp.MustCompile(`msg=listening clients=(\S+)`)

// start runs a ferryman with a configuration and waits until it listens.
func (t Target) start(ctx context.Context, dir, config string, secure bool) (*process, error) {
	p := &process{dir: dir, ended: make(chan error, 1)}
	if err := os.WriteFile(p.path("config.toml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	args := []string{"--config", p.path("config.toml"), "--bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0"}
	if t.Engine != "" {
		args = append(args, "--engine", t.Engine)
	}
	if secure {
		if err := writeCertificate(p.path("cert.pem"), p.path("key.pem")); err != nil {
			return nil, err
		}
		args = append(args, "--tls-cert", p.path("cert.pem"), "--tls-key", p.path("key.pem"))
	}
	out, err := os.Create(p.path("log"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p.cmd = exec.Command(t.Binary, args...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.wait()
	for end := time.Now().Add(startLimit); ; pause(ctx, 5*time.Millisecond) {
		if m := started.FindStringSubmatch(p.log()); m != nil {
			p.addr = m[1]
			return p, nil
		}
		select {
		case err := <-p.ended:
			return nil, fmt.Errorf("ferryman does not start: %w\n%s", err, p.log())
		case <-ctx.Done():
			p.kill()
			return nil, ctx.Err()
		default:
		}
		if time.Now().After(end) {
			p.kill()
			return nil, fmt.Errorf("ferryman does not listen\n%s", p.log())
		}
	}
}

func (p *process) wait() { p.ended <- p.cmd.Wait() }

func (p *process) path(name string) string { return filepath.Join(p.dir, name) }

func (p *process) log() string {
	text, _ := os.ReadFile(p.path("log"))
	return string(text)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// reconfigure replaces the configuration as editors do, and has it read at once.
func (p *process) reconfigure(config string) error {
	aside := p.path("config.new")
	if err := os.WriteFile(aside, []byte(config), 0o600); err != nil {
		return err
	}
	if err := os.Rename(aside, p.path("config.toml")); err != nil {
		return err
	}
	return p.cmd.Process.Signal(syscall.SIGHUP)
}

// stop ends it with SIGTERM. What is wrong with how it went is an error.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		if err != nil {
			err = fmt.Errorf("ferryman ends with %w", err)
		}
		return errors.Join(err, trouble(p.log()))
	case <-time.After(stopLimit):
		p.kill()
		return errors.Join(errors.New("ferryman does not end after SIGTERM"), trouble(p.log()))
	}
}

// trouble finds what no log of ferryman's may hold.
func trouble(log string) error {
	for _, sign := range []string{"WARNING: DATA RACE", "panic", "fatal error"} {
		if i := strings.Index(log, sign); i >= 0 {
			return fmt.Errorf("the log has %q:\n%s", sign, log[i:min(len(log), i+3000)])
		}
	}
	return nil
}
