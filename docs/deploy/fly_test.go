package deploy

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/require"
)

// flyFile has the keys that fly.toml uses, spelled as Fly's reference does.
type flyFile struct {
	App           string `toml:"app"`
	PrimaryRegion string `toml:"primary_region"`
	KillSignal    string `toml:"kill_signal"`
	KillTimeout   int    `toml:"kill_timeout"` // seconds; Fly allows 300
	Deploy        struct {
		Strategy       string `toml:"strategy"`
		MaxUnavailable int    `toml:"max_unavailable"`
	} `toml:"deploy"`
	Env   map[string]string `toml:"env"`
	Files []struct {
		GuestPath string `toml:"guest_path"`
		LocalPath string `toml:"local_path"`
	} `toml:"files"`
	Services []flyService        `toml:"services"`
	Checks   map[string]flyCheck `toml:"checks"`
	Metrics  []struct {
		Port int    `toml:"port"`
		Path string `toml:"path"`
	} `toml:"metrics"`
	VM []struct {
		Size   string `toml:"size"`
		Memory string `toml:"memory"`
	} `toml:"vm"`
}

type flyService struct {
	InternalPort       int    `toml:"internal_port"`
	Protocol           string `toml:"protocol"`
	AutoStop           string `toml:"auto_stop_machines"`
	AutoStart          bool   `toml:"auto_start_machines"`
	MinMachinesRunning int    `toml:"min_machines_running"`
	Concurrency        struct {
		Type      string `toml:"type"`
		SoftLimit int    `toml:"soft_limit"`
		HardLimit int    `toml:"hard_limit"`
	} `toml:"concurrency"`
	Ports []struct {
		Port       int      `toml:"port"`
		Handlers   []string `toml:"handlers"`
		ForceHTTPS bool     `toml:"force_https"`
	} `toml:"ports"`
	TCPChecks []flyCheck `toml:"tcp_checks"`
}

type flyCheck struct {
	Type        string `toml:"type"`
	Port        int    `toml:"port"`
	Method      string `toml:"method"`
	Path        string `toml:"path"`
	Interval    string `toml:"interval"`
	Timeout     string `toml:"timeout"`
	GracePeriod string `toml:"grace_period"`
}

func readFly(t *testing.T) flyFile {
	t.Helper()
	var f flyFile
	require.NoError(t, strictTOML(read(t, "fly.toml"), &f))
	return f
}

func strictTOML(text string, into any) error {
	return toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(into)
}

func TestFly_AnUnknownKeyIsAnError(t *testing.T) {
	text := read(t, "fly.toml")
	require.Error(t, strictTOML("kill_time = 1\n"+text, &flyFile{}))
	require.Error(t, strictTOML(strings.Replace(text, "internal_port", "internal_prot", 1), &flyFile{}))
	require.Error(t, strictTOML("app = \"twice\"\n"+text, &flyFile{}))
}

func TestFly_WaitsLongerThanTheDrain(t *testing.T) {
	f := readFly(t)
	require.Equal(t, "SIGTERM", f.KillSignal)
	require.Greater(t, time.Duration(f.KillTimeout)*time.Second, drain(t))
	require.LessOrEqual(t, f.KillTimeout, 300, "more than Fly allows")
}

func TestFly_PortsAreTheDefaults(t *testing.T) {
	f := readFly(t)
	require.Len(t, f.Services, 1)
	require.Equal(t, port(t, "bind"), f.Services[0].InternalPort)
	require.Equal(t, port(t, "metrics-bind"), f.Checks["ready"].Port)
	require.Len(t, f.Metrics, 1)
	require.Equal(t, port(t, "metrics-bind"), f.Metrics[0].Port)
	require.Equal(t, "/metrics", f.Metrics[0].Path)
	for name := range f.Env {
		require.NotContains(t, name, "BIND", "the ports above are the defaults")
	}
}

func TestFly_ChecksReadinessAndTheListener(t *testing.T) {
	f := readFly(t)
	require.Len(t, f.Checks, 1)
	ready := f.Checks["ready"]
	require.Equal(t, "http", ready.Type)
	require.Equal(t, "/readyz", ready.Path)
	require.Len(t, f.Services[0].TCPChecks, 1, "what Fly routes by")
	for _, c := range append(f.Services[0].TCPChecks, ready) {
		for _, text := range []string{c.Interval, c.Timeout, c.GracePeriod} {
			d, err := time.ParseDuration(text)
			require.NoError(t, err)
			require.Positive(t, d)
		}
	}
}

func TestFly_StaysAwakeInSingapore(t *testing.T) {
	f := readFly(t)
	require.Equal(t, "sin", f.PrimaryRegion)
	s := f.Services[0]
	require.Equal(t, "off", s.AutoStop)
	require.Positive(t, s.MinMachinesRunning)
	require.Len(t, s.Ports, 2)
	require.Equal(t, 80, s.Ports[0].Port)
	require.True(t, s.Ports[0].ForceHTTPS)
	require.Equal(t, 443, s.Ports[1].Port)
	require.Contains(t, s.Ports[1].Handlers, "tls")
	require.Less(t, s.Concurrency.SoftLimit, s.Concurrency.HardLimit)
}

func TestFly_ConfigurationIsValidAndWhereTheVariableSays(t *testing.T) {
	f := readFly(t)
	require.Len(t, f.Files, 1)
	require.Equal(t, f.Files[0].GuestPath, f.Env[variable(t, "config")])
	require.Contains(t, f.Env, variable(t, "log-format"))
	accepted(t, read(t, filepath.Join(module, f.Files[0].LocalPath)))
}
