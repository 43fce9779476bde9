// Package contender starts and ends the programs that are compared, from the configurations in
// benches/, and checks that their answers are right before anybody measures them.
//
//	c, _ := contender.Named("nginx-tuned")
//	r, err := c.Start(ctx, contender.Site{...})
//	...
//	err = r.Verify(ctx, contender.Request{Path: "/echo", Body: ...})
//	defer r.Stop()
//
// Everything listens on loopback, runs in the foreground from a folder of its own, and knows nothing
// of the machine's services.
package contender

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Site is what a contender is set up with. Its fields are what the configurations in benches/ may
// name.
type Site struct {
	Configs  string // the folder benches/
	Dir      string // for files of this contender only
	Listen   string // host:port
	Upstream string // host:port
	Metrics  string // host:port, for those that have metrics
	Workers  int
	TLS      bool
	Pair     Pair
}

// Cert is the file of the certificate, for the configurations.
func (s Site) Cert() string { return s.Pair.Cert }

// Key is the file of the certificate's key.
func (s Site) Key() string { return s.Pair.Key }

// Both is the file of the certificate and its key together.
func (s Site) Both() string { return s.Pair.Both }

// Contender is a way to relay requests, and how to start it.
type Contender struct {
	Name  string
	Title string // what it is, without its version
	// Binary is a path, or a name that is looked up. Empty: there is no process, requests go straight
	// to the upstream.
	Binary  string
	Install string // what to do if Binary is not found

	Config  string   // in benches/; empty: none
	args    []string // templates over Site, and .Config for the configuration's path
	tlsArgs []string // appended where TLS is on
	version []string // arguments that make it print its version

	Terminates bool // can speak TLS and HTTP/2 to clients
	Forwards   bool // adds X-Forwarded-For and X-Forwarded-Proto
	HasMetrics bool // tells its allocations on Site.Metrics
}

// Programs are the binaries that are built for the comparison.
type Programs struct {
	Ferryman, Floor string // paths
	Other           string // another build of ferryman, for a change and its effect; empty: none
}

// The names that the comparison itself needs.
const (
	Ferryman   = "ferryman"
	NginxTuned = "nginx-tuned"
	Floor      = "floor"
	Direct     = "direct"
	Other      = "ferryman-other"
)

// All lists the contenders in the order of the report.
func All(p Programs) []Contender {
	ferryman := func(name, title, binary, engine string) Contender {
		return Contender{
			Name: name, Title: title, Binary: binary, Install: "name a binary", Config: "ferryman/ferryman.toml", version: []string{"version"},
			args:    []string{"--config", "{{.Config}}", "--bind", "{{.Listen}}", "--metrics-bind", "{{.Metrics}}", "--log-level", "warn", "--engine", engine},
			tlsArgs: []string{"--tls-cert", "{{.Cert}}", "--tls-key", "{{.Key}}"},

			Terminates: true, Forwards: true, HasMetrics: true,
		}
	}
	nginx := func(name, title, config string) Contender {
		return Contender{
			Name: name, Title: title, Binary: "nginx", Install: "apt-get install nginx", Config: config, version: []string{"-v"},
			args: []string{"-e", "stderr", "-p", "{{.Dir}}", "-c", "{{.Config}}"}, Terminates: true, Forwards: true,
		}
	}
	return []Contender{
		{Name: Direct, Title: "no proxy"},
		{
			Name: Floor, Title: "relay that parses nothing", Binary: p.Floor, Install: "install a C compiler",
			args: []string{"{{.Listen}}", "{{.Upstream}}", "{{.Workers}}"},
		},
		ferryman(Ferryman, "ferryman", p.Ferryman, "auto"),
		ferryman(Other, "ferryman, other build", p.Other, "auto"),
		ferryman("ferryman-goroutines", "ferryman, goroutines", p.Ferryman, "goroutines"),
		nginx(NginxTuned, "NGINX tuned", "nginx/tuned.conf"),
		nginx("nginx-default", "NGINX default", "nginx/default.conf"),
		{
			Name: "haproxy", Title: "HAProxy", Binary: "haproxy", Install: "apt-get install haproxy", Config: "haproxy/haproxy.cfg",
			version: []string{"-v"}, args: []string{"-db", "-f", "{{.Config}}"}, Terminates: true, Forwards: true,
		},
		{
			Name: "caddy", Title: "Caddy", Binary: "caddy", Install: "apt-get install caddy", Config: "caddy/Caddyfile",
			version: []string{"version"}, args: []string{"run", "--adapter", "caddyfile", "--config", "{{.Config}}"},
			Terminates: true, Forwards: true,
		},
	}
}

// Pick returns the contenders with the given names, in the order of all.
func Pick(all []Contender, names []string) ([]Contender, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var picked []Contender
	var known []string
	for _, c := range all {
		known = append(known, c.Name)
		if wanted[c.Name] {
			picked = append(picked, c)
			delete(wanted, c.Name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("no contender %q: there are %s", name, strings.Join(known, ", "))
	}
	return picked, nil
}

// ErrNotFound is what a contender that is not installed fails with.
var ErrNotFound = errors.New("not found")

// find is the path of the contender's program. Distributions keep servers where an ordinary user's
// search path does not lead.
func (c Contender) find() (string, error) {
	for _, candidate := range []string{c.Binary, filepath.Join("/usr/sbin", c.Binary), filepath.Join("/usr/local/sbin", c.Binary)} {
		if c.Binary == "" {
			break
		}
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNotFound, c.Install)
}

// Found reports whether the contender's program is installed.
func (c Contender) Found() bool {
	_, err := c.find()
	return err == nil
}

var versionNumber = regexp.MustCompile(`v?\d+\.\d+(\.\d+)?[^\s,]*`)

// Version is what the program says about itself, or empty.
func (c Contender) Version(ctx context.Context) string {
	path, err := c.find()
	if err != nil || len(c.version) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, c.version...).CombinedOutput()
	if err != nil {
		return ""
	}
	return parseVersion(string(out))
}

// parseVersion takes the number out of what a program prints first. A build without one has none.
func parseVersion(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line, _, _ = strings.Cut(line, ", ")
	return strings.TrimPrefix(versionNumber.FindString(line), "v")
}
