package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
)

// A setting is a flag with its environment variable, the commands that have it, and what its
// value has to be.
type setting struct {
	flag, env, value, help string
	commands               string
	ok                     func(string) bool
	want                   string
	given                  bool // by flag or by variable
}

// settings are the flags in the order of their help.
type settings []*setting

const commands = "run check healthcheck version demo"

func allSettings() settings {
	addr := func(flag, env, value, help, commands string) *setting {
		return &setting{flag, env, value, help, commands, isAddress, "address:port, such as 127.0.0.1:8080", false}
	}
	file := func(flag, env, value, help, commands string) *setting {
		return &setting{flag, env, value, help, commands, func(s string) bool { return s != "" || value == "" }, "the name of a file", false}
	}
	choice := func(flag, env, value string, values ...string) *setting {
		want := strings.Join(values, ", ")
		return &setting{flag, env, value, want, "run demo", func(s string) bool { return slices.Contains(values, s) }, "one of " + want, false}
	}
	return settings{
		file("config", "FERRYMAN_CONFIG", "config.toml", "the configuration file", "run check"),
		addr("bind", "FERRYMAN_BIND", "0.0.0.0:8080", "where clients connect to", "run demo"),
		addr("metrics-bind", "FERRYMAN_METRICS_BIND", "0.0.0.0:9090", "/metrics, /healthz and /readyz", "run healthcheck demo"),
		file("tls-cert", "FERRYMAN_TLS_CERT", "", "certificate chain in PEM: speak TLS", "run"),
		file("tls-key", "FERRYMAN_TLS_KEY", "", "its private key in PEM", "run"),
		choice("log-format", "FERRYMAN_LOG_FORMAT", "text", "text", "json"),
		choice("log-level", "FERRYMAN_LOG_LEVEL", "info", "debug", "info", "warn", "error"),
		choice("engine", "FERRYMAN_ENGINE", "auto", "auto", "goroutines", "loops"),
	}
}

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	_, number := strconv.ParseUint(port, 10, 16)
	return err == nil && number == nil
}

func (ss settings) find(flag string) *setting {
	return ss[slices.IndexFunc(ss, func(s *setting) bool { return s.flag == flag })]
}

func (ss settings) get(flag string) string { return ss.find(flag).value }

func usage() string {
	var b strings.Builder
	b.WriteString(`ferryman is a layer-7 reverse proxy.

usage: ferryman [command] [flags]

  run          run the proxy (the default)
  check        check a configuration and print its routes
  healthcheck  ask the metrics listener of a running proxy
  version      print version, commit and Go
  demo         run the proxy over three upstreams of its own, on 127.0.0.1

A flag wins over its variable.

`)
	for _, s := range allSettings() {
		fmt.Fprintf(&b, "  --%-13s %-22s %s", s.flag, s.env, s.help)
		if s.value != "" {
			fmt.Fprintf(&b, " (default %s)", s.value)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// parse sets p.settings from the environment and from args, where flags may stand on both sides
// of the command.
func (p *program) parse(args []string) (command string, err error) {
	p.settings = allSettings()
	flags := flag.NewFlagSet("ferryman", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, s := range p.settings {
		flags.StringVar(&s.value, s.flag, s.value, "")
		if v := p.env(s.env); v != "" {
			s.value = v
		}
	}
	command = "run"
	err = flags.Parse(args)
	if rest := flags.Args(); err == nil && len(rest) > 0 {
		command = rest[0]
		err = flags.Parse(rest[1:])
	}
	switch {
	case err != nil:
		return "", err
	case command == "help":
		return "", flag.ErrHelp
	case !hasWord(commands, command):
		return "", fmt.Errorf("there is no command %q", command)
	case flags.NArg() > 0:
		return "", fmt.Errorf("%s takes no argument %q", command, flags.Arg(0))
	}
	return command, p.validate(command, flags)
}

func hasWord(words, word string) bool { return slices.Contains(strings.Fields(words), word) }

func (p *program) validate(command string, flags *flag.FlagSet) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, s := range p.settings {
		name, used := "--"+s.flag, hasWord(s.commands, command)
		if !given[s.flag] && p.env(s.env) != "" {
			name = s.env
		}
		s.given = given[s.flag] || name == s.env
		switch {
		case !used && given[s.flag]:
			return fmt.Errorf("%s has no flag --%s", command, s.flag)
		case used && !s.ok(s.value):
			return fmt.Errorf("%s %q: must be %s", name, s.value, s.want)
		}
	}
	if command == "run" && (p.get("tls-cert") == "") != (p.get("tls-key") == "") {
		return errors.New("TLS needs a pair: pass both --tls-cert and --tls-key, or neither")
	}
	return nil
}
