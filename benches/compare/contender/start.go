package contender

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/template"
	"time"

	"github.com/Bunty9/ferryman/benches/compare/proc"
)

const (
	startLimit = 10 * time.Second
	stopGrace  = 3 * time.Second
)

// Running is a contender that takes requests.
type Running struct {
	Contender
	Site    Site
	process *proc.Process // nil where there is none
}

// Start starts the contender and waits until it takes connections. Where it is not installed the
// error wraps ErrNotFound. Stop must be called.
func (c Contender) Start(ctx context.Context, s Site) (*Running, error) {
	if c.Name == Direct {
		s.Listen = s.Upstream
		return &Running{Contender: c, Site: s}, nil
	}
	path, err := c.find()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, err
	}
	args, err := c.arguments(s)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), "HOME="+s.Dir, "XDG_DATA_HOME="+s.Dir, "XDG_CONFIG_HOME="+s.Dir)
	p, err := proc.Start(c.Name, cmd, s.Dir)
	if err != nil {
		return nil, err
	}
	if err := Listening(ctx, p, s.Listen); err != nil {
		p.Stop(0)
		return nil, err
	}
	return &Running{Contender: c, Site: s, process: p}, nil
}

// Listening waits until a process takes connections at addr.
func Listening(ctx context.Context, p *proc.Process, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.Exited():
			return fmt.Errorf("%s ended at once: %s", p.Name, p.Tail())
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen on %s: %w: %s", p.Name, addr, err, p.Tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop ends the contender with all its processes.
func (r *Running) Stop() {
	if r.process != nil {
		r.process.Stop(stopGrace)
	}
}

// PIDs are the contender's processes; none for Direct.
func (r *Running) PIDs() []int {
	if r.process == nil {
		return nil
	}
	return proc.Tree(r.process.PID())
}

// Tail is the end of what the contender printed.
func (r *Running) Tail() string {
	if r.process == nil {
		return ""
	}
	return r.process.Tail()
}

// URL is where the contender serves path.
func (r *Running) URL(path string) string {
	if r.Site.TLS {
		return "https://" + r.Site.Listen + path
	}
	return "http://" + r.Site.Listen + path
}

// arguments writes the configuration and returns the command line.
func (c Contender) arguments(s Site) ([]string, error) {
	values := struct {
		Site
		Config string
	}{Site: s}
	if c.Config != "" {
		text, err := os.ReadFile(filepath.Join(s.Configs, c.Config))
		if err != nil {
			return nil, err
		}
		filled, err := fill(c.Config, string(text), values)
		if err != nil {
			return nil, err
		}
		values.Config = filepath.Join(s.Dir, filepath.Base(c.Config))
		if err := os.WriteFile(values.Config, []byte(filled), 0o644); err != nil {
			return nil, err
		}
	}
	templates := c.args
	if s.TLS {
		templates = append(slices.Clip(templates), c.tlsArgs...)
	}
	var args []string
	for _, t := range templates {
		arg, err := fill("argument of "+c.Name, t, values)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	return args, nil
}

func fill(name, text string, values any) (string, error) {
	t, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = t.Execute(&out, values)
	return out.String(), err
}

// FreeAddress is an address on loopback that nobody listens on at the moment.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr := l.Addr().String()
	return addr, l.Close()
}
