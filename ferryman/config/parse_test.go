package config

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the expected halves of testdata")

// separator stands between a configuration and what is expected of it. The line break before it
// belongs to it, so that a configuration may end without one.
const separator = "\n----\n"

func TestParse_Golden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			in, want, ok := bytes.Cut(data, []byte(separator))
			require.True(t, ok, "no separator")
			c, err := Parse("f", in)
			got := describe(c, err)
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(string(in)+separator+got), 0o644))
			}
			require.Equal(t, string(want), got)
		})
	}
}

// describe is a valid configuration, or its errors.
func describe(c Config, err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "valid\nhealth %v %v threshold %d cooldown %v\n", c.HealthInterval, c.HealthTimeout, c.FailureThreshold, c.DefaultCooldown)
	fmt.Fprintf(&b, "upstream %v connect %v idle %v body %v\n", c.UpstreamTimeout, c.ConnectTimeout, c.ClientIdleTimeout, c.BodyIdleTimeout)
	fmt.Fprintf(&b, "connections %d age %v trusted %v\n", c.MaxConnections, c.UpstreamMaxAge, c.TrustedProxies)
	for _, r := range c.Routes {
		fmt.Fprintf(&b, "%+v\n", r)
	}
	return b.String()
}

func TestParse_ErrorNamesFileLineAndKey(t *testing.T) {
	_, err := Parse("dir/x.toml", []byte("\nfailure_threshold = 0\n"))
	var es Errors
	require.ErrorAs(t, err, &es)
	require.Equal(t, Errors{
		{File: "dir/x.toml", Key: "routes", Msg: "there is none: add [[routes]] with a prefix and an upstream"},
		{File: "dir/x.toml", Line: 2, Key: "failure_threshold", Msg: "must be a whole number from 1 to 1000000; it is 0"},
	}, es)
}

func TestParse_ErrorsAreBounded(t *testing.T) {
	lines := []string{"a=1\n", "=\n", "a=\n", "[a]\n", "[[routes]]\n", "[[routes\n", "a", "[", "{", `"`, "'''", "a=[1,", "#\n", "\n",
		"trusted_proxies=[[", "routes=[{},{}]\n", "routes=[{", "upgrade=0\n[[routes]]\n"}
	for _, line := range lines {
		data := []byte(strings.Repeat(line, (256<<10)/len(line)))
		_, err := Parse("f", data)
		require.Error(t, err, line)
		require.LessOrEqual(t, strings.Count(err.Error(), "\n"), maxShown, line)
	}
}

func TestParse_KnowsEveryDocumentedKey(t *testing.T) {
	var keys []string
	for _, f := range append(topFields, routeFields...) {
		keys = append(keys, f.key)
	}
	require.Equal(t, strings.Fields(`health_interval_secs health_timeout_secs default_cooldown_secs failure_threshold upstream_timeout_secs
		connect_timeout_secs upstream_max_age_secs client_idle_timeout_secs body_idle_timeout_secs max_connections trusted_proxies
		prefix upstream cooldown_secs strip_prefix upgrade`), keys)
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		in, _, _ := bytes.Cut(data, []byte(separator))
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data)
		again, errAgain := Parse("f", bytes.Clone(data))
		require.Equal(t, describe(c, err), describe(again, errAgain), "not deterministic")
		if err != nil {
			var es Errors
			require.True(t, errors.As(err, &es) && len(es) > 0)
			require.Equal(t, Config{}, c)
			for _, e := range es {
				require.NotContains(t, e.Error(), "\n")
				require.NotEmpty(t, e.Msg)
				require.LessOrEqual(t, e.Line, 1+bytes.Count(data, []byte("\n")))
			}
			return
		}
		require.NoError(t, c.Validate(), "valid as a file, invalid as a value")
		// The whole decoder agrees that this is TOML, and reads the same out of it.
		var tree map[string]any
		require.NoError(t, toml.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &tree))
		require.Len(t, tree["routes"], len(c.Routes))
		if n, ok := tree["failure_threshold"]; ok {
			require.EqualValues(t, n, c.FailureThreshold)
		}
		for i, r := range tree["routes"].([]any) {
			require.Equal(t, trimSlash(r.(map[string]any)["prefix"].(string)), c.Routes[i].Prefix)
			require.Equal(t, "http://"+c.Routes[i].Upstream, strings.ToLower(r.(map[string]any)["upstream"].(string)))
		}
	})
}
