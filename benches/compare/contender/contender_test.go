package contender

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseVersion_TakesTheNumberOfTheProgramItself(t *testing.T) {
	for text, want := range map[string]string{
		"nginx version: nginx/1.22.1\n": "1.22.1",
		"HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/\nRunning on: Linux 6.1\n": "2.6.12-1+deb12u4",
		"v2.8.4 h1:abc=\n": "2.8.4",
		"2.6.2\n":          "2.6.2",
		"ferryman v1.2.3, commit abc, go1.26.8 linux/amd64\n": "1.2.3",
		"ferryman (devel), commit abc, go1.26.8\n":            "",
		"": "",
	} {
		require.Equal(t, want, parseVersion(text), text)
	}
}

func TestPick_KeepsTheOrderAndNamesWhatItDoesNotKnow(t *testing.T) {
	all := All(Programs{})
	picked, err := Pick(all, []string{"caddy", Ferryman, Direct})
	require.NoError(t, err)
	var names []string
	for _, c := range picked {
		names = append(names, c.Name)
	}
	require.Equal(t, []string{Direct, Ferryman, "caddy"}, names)
	_, err = Pick(all, []string{"traefik"})
	require.ErrorContains(t, err, `no contender "traefik"`)
}

func TestStart_OfWhatIsNotInstalledIsNotFoundAndSaysWhatToDo(t *testing.T) {
	c := Contender{Name: "ghost", Binary: "no-such-proxy", Install: "apt-get install ghost"}
	_, err := c.Start(t.Context(), Site{Dir: t.TempDir()})
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, "apt-get install ghost")
	require.False(t, c.Found())
	require.Empty(t, c.Version(t.Context()))
}

// Every configuration is filled in completely, with and without TLS, and the equal footing that
// docs/benchmarks.md promises is in it.
func TestConfigurations_AreCompleteAndFair(t *testing.T) {
	for _, tls := range []bool{false, true} {
		for _, c := range All(Programs{Ferryman: "ferryman", Floor: "floor"}) {
			if c.Config == "" || tls && !c.Terminates {
				continue
			}
			t.Run(c.Name, func(t *testing.T) {
				dir := t.TempDir()
				args, err := c.arguments(Site{
					Configs: "../..", Dir: dir, Listen: "127.0.0.1:1111", Upstream: "127.0.0.1:2222", Metrics: "127.0.0.1:3333",
					Workers: 7, TLS: tls, Pair: Pair{Cert: "/c.pem", Key: "/k.pem", Both: "/b.pem"},
				})
				require.NoError(t, err)
				text := read(t, filepath.Join(dir, filepath.Base(c.Config)))
				all := text + strings.Join(args, " ")
				require.NotContains(t, all, "{{")
				require.NotContains(t, all, "<no value>")
				require.Contains(t, all, "127.0.0.1:1111")
				require.Contains(t, all, "127.0.0.1:2222")
				require.Equal(t, tls, strings.Contains(all, "/c.pem") || strings.Contains(all, "/b.pem"))
				if tls && c.Config != "ferryman/ferryman.toml" { // Go speaks 1.3 where it can
					require.Regexp(t, `(?i)tls ?v?1\.3`, text)
				}
			})
		}
	}
}

func TestNginx_TunedKeepsConnectionsAndDefaultDoesNot(t *testing.T) {
	tuned, plain := read(t, "../../nginx/tuned.conf"), read(t, "../../nginx/default.conf")
	for _, line := range []string{"proxy_http_version 1.1;", `proxy_set_header Connection "";`, "keepalive 512;", "keepalive_requests"} {
		require.Contains(t, tuned, line)
		require.NotContains(t, plain, line)
	}
	for _, text := range []string{tuned, plain} {
		require.Contains(t, text, "access_log off;")
		require.Contains(t, text, "worker_processes {{.Workers}};")
		require.Contains(t, text, "X-Forwarded-For")
		require.Contains(t, text, "X-Forwarded-Proto")
	}
}
