package main

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into), name)
}

func TestProvisioning_DatasourceIsTheDashboardsAndKnowsTheScrapeInterval(t *testing.T) {
	var scrape struct {
		Global struct {
			Interval string `yaml:"scrape_interval"`
		}
	}
	readYAML(t, "../../prometheus/prometheus.yml", &scrape)
	var provisioned struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			UID, Type, URL string
			Default        bool `yaml:"isDefault"`
			JSONData       struct {
				TimeInterval string `yaml:"timeInterval"`
			} `yaml:"jsonData"`
		}
	}
	readYAML(t, "../provisioning/datasources/prometheus.yml", &provisioned)
	require.Equal(t, 1, provisioned.APIVersion)
	require.Len(t, provisioned.Datasources, 1)
	d := provisioned.Datasources[0]
	require.Equal(t, datasourceUID, d.UID)
	require.Equal(t, "prometheus", d.Type)
	require.True(t, d.Default)
	require.Equal(t, "1s", scrape.Global.Interval)
	require.Equal(t, scrape.Global.Interval, d.JSONData.TimeInterval)
}

// Where the dashboard lies is written down three times; the third is the mount in compose.
func TestProvisioning_ProviderAndHomeReadOneFolder(t *testing.T) {
	var provisioned struct {
		Providers []struct {
			Type    string
			Options struct{ Path string }
		}
	}
	readYAML(t, "../provisioning/dashboards/ferryman.yml", &provisioned)
	require.Len(t, provisioned.Providers, 1)
	require.Equal(t, "file", provisioned.Providers[0].Type)
	require.Equal(t, "/etc/grafana/dashboards", provisioned.Providers[0].Options.Path)
	ini, err := os.ReadFile("../grafana.ini")
	require.NoError(t, err)
	require.Contains(t, string(ini), "default_home_dashboard_path = /etc/grafana/dashboards/ferryman.json\n")
}

func TestProvisioning_NobodyLogsIn(t *testing.T) {
	ini, err := os.ReadFile("../grafana.ini")
	require.NoError(t, err)
	require.Regexp(t, `(?s)\[auth\]\ndisable_login_form = true\n\n\[auth\.anonymous\]\nenabled = true\n`, string(ini))
}

// One objective, in the dashboard's lines, in words and in the rules' buckets.
func TestBudget_IsTheSameEverywhere(t *testing.T) {
	for _, name := range []string{"recording.yml", "alerts.production.yml"} {
		text, err := os.ReadFile("../../prometheus/rules/" + name)
		require.NoError(t, err)
		bounds := regexp.MustCompile(`le="([^"]+)"`).FindAllStringSubmatch(string(text), -1)
		require.Len(t, bounds, 5)
		for _, b := range bounds {
			le, err := strconv.ParseFloat(b[1], 64)
			require.NoError(t, err)
			require.Equal(t, budget, le)
		}
	}
	text, err := os.ReadFile(committed)
	require.NoError(t, err)
	require.Contains(t, string(text), `"expr": "vector(`+strconv.FormatFloat(budget, 'f', -1, 64)+`)"`)
	require.Contains(t, string(text), `budget 50 ms`)
}
