package prometheus_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// rule is an alert or a recording.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// name tells the alerts of one name apart.
func (r rule) name() string { return strings.TrimSpace(r.Alert + " " + r.Labels["burn"]) }

// rules returns the alerts and the recordings of a file, in its order.
func rules(t *testing.T, name string) (alerts, records []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "rules", name)), &file))
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				alerts = append(alerts, r)
			} else {
				records = append(records, r)
			}
		}
	}
	return alerts, records
}

var alertFiles = []string{"alerts.lab.yml", "alerts.production.yml"}

func TestAlerts_AreTheOnesOfTheLab(t *testing.T) {
	for _, file := range alertFiles {
		alerts, _ := rules(t, file)
		var names []string
		for _, r := range alerts {
			names = append(names, r.name())
		}
		require.Equal(t, []string{
			"FerrymanDown", "UpstreamDown", "AllUpstreamsDown", "CircuitOpen", "CircuitFlapping", "HighErrorRatio",
			"LatencyBudgetBurn 14.4x", "LatencyBudgetBurn 6x", "LatencyBudgetBurn 1x", "ConfigReloadFailed",
			"ClientAbortsHigh", "FileDescriptorsLow",
		}, names, file)
	}
}

func TestAlerts_SayWhatHappenedWhereToLookAndWhichLesson(t *testing.T) {
	for _, file := range alertFiles {
		alerts, _ := rules(t, file)
		for _, r := range alerts {
			require.Len(t, r.Annotations, 3, r.Alert)
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			require.Greater(t, len(r.Annotations["look_first"]), 40, r.Alert)
			require.Regexp(t, `^(0\d|10) [A-Z]`, r.Annotations["lesson"], r.Alert)
			require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
			// Versions of Prometheus differ in the last digits of a value.
			require.NotContains(t, fmt.Sprint(r.Annotations), "$value", r.Alert)
		}
	}
}

var window = regexp.MustCompile(`\[\w+\]|(?:rate)\d+[smhd]|over \w+ and still over \w+`)

// What differs between the lab and production is time, and how often a circuit may close in it.
func TestAlerts_OfBothFilesHaveOneShape(t *testing.T) {
	lab, _ := rules(t, "alerts.lab.yml")
	production, _ := rules(t, "alerts.production.yml")
	require.Len(t, production, len(lab))
	for i, l := range lab {
		p := production[i]
		shape := func(s string) string { return window.ReplaceAllString(s, "WINDOW") }
		require.Equal(t, l.Labels, p.Labels)
		for key, text := range l.Annotations {
			require.Equal(t, shape(text), shape(p.Annotations[key]), l.Alert)
		}
		if l.Alert == "CircuitFlapping" {
			p.Expr = strings.Replace(p.Expr, "> 5.5", "> 2.5", 1)
		}
		require.Equal(t, shape(l.Expr), shape(p.Expr), l.Alert)
	}
}

var burnWindow = regexp.MustCompile(`ratio_rate(\w+) > ([0-9.]+)`)

func TestLatencyBudgetBurn_WindowsAreThoseOfProductionOverSixty(t *testing.T) {
	lab, _ := rules(t, "alerts.lab.yml")
	production, _ := rules(t, "alerts.production.yml")
	var seen []string
	for i, r := range production {
		if r.Alert != "LatencyBudgetBurn" {
			continue
		}
		long, short := burnWindow.FindAllStringSubmatch(r.Expr, -1), burnWindow.FindAllStringSubmatch(lab[i].Expr, -1)
		require.Len(t, long, 2)
		require.Len(t, short, 2)
		for w := range long {
			require.Equal(t, long[w][2], short[w][2])
			require.Equal(t, span(t, long[w][1]), 60*span(t, short[w][1]))
			seen = append(seen, r.Labels["burn"]+" "+long[w][1]+" "+long[w][2])
		}
	}
	require.Equal(t, []string{
		"14.4x 1h 0.144", "14.4x 5m 0.144", "6x 6h 0.06", "6x 30m 0.06", "1x 3d 0.01", "1x 6h 0.01",
	}, seen)
}

// span reads a duration as Prometheus writes it, of one unit.
func span(t *testing.T, s string) time.Duration {
	t.Helper()
	if days, ok := strings.CutSuffix(s, "d"); ok {
		return 24 * span(t, days+"h")
	}
	d, err := time.ParseDuration(s)
	require.NoError(t, err)
	return d
}

func TestRecordings_AreNamedByLevelMetricAndOperation(t *testing.T) {
	used := map[string]bool{}
	for _, file := range append(alertFiles, "recording.yml") {
		_, records := rules(t, file)
		for _, r := range records {
			require.Regexp(t, `^(route|instance):ferryman_[a-z0-9_]+:(ratio_|p\d\d_)?rate\d+[smhd]$`, r.Record)
			require.False(t, used[r.Record], "%s twice", r.Record)
			used[r.Record] = true
			by := map[string]string{"route": "job, instance, route, upstream", "instance": "job, instance"}
			level, _, _ := strings.Cut(r.Record, ":")
			if strings.Contains(r.Expr, " by ") {
				require.Contains(t, r.Expr, by[level]+")", r.Record)
			}
			if m := regexp.MustCompile(`\[(\w+)\]`).FindStringSubmatch(r.Expr); m != nil {
				require.True(t, strings.HasSuffix(r.Record, "rate"+m[1]), r.Record)
			}
		}
	}
}

func TestRules_AlertsUseOnlyRecordingsOfTheirOwnMode(t *testing.T) {
	recorded := regexp.MustCompile(`\w+:\w+:\w+`)
	for file, source := range map[string]string{"alerts.lab.yml": "recording.yml", "alerts.production.yml": "alerts.production.yml"} {
		alerts, _ := rules(t, file)
		_, records := rules(t, source)
		known := map[string]bool{}
		for _, r := range records {
			known[r.Record] = true
		}
		for _, r := range alerts {
			for _, name := range recorded.FindAllString(r.Expr, -1) {
				require.True(t, known[name], "%s of %s is not in %s", name, r.Alert, source)
			}
		}
	}
}

// Each alert is seen firing, and quiet before and after.
func TestRules_EveryAlertHasATestThatFiresAndOneThatDoesNot(t *testing.T) {
	for _, mode := range []string{"lab", "production"} {
		fires, quiet := map[string]int{}, map[string]int{}
		for _, name := range glob(t, "tests/"+mode+".*.yml") {
			var file struct {
				Tests []struct {
					Checks []struct {
						Alert string `yaml:"alertname"`
						Want  []struct {
							Labels map[string]string `yaml:"exp_labels"`
						} `yaml:"exp_alerts"`
					} `yaml:"alert_rule_test"`
				}
			}
			require.NoError(t, yaml.Unmarshal([]byte(read(t, name)), &file))
			for _, test := range file.Tests {
				for _, check := range test.Checks {
					if len(check.Want) == 0 {
						quiet[check.Alert]++
					}
					for _, want := range check.Want {
						fires[rule{Alert: check.Alert, Labels: want.Labels}.name()]++
					}
				}
			}
		}
		alerts, _ := rules(t, "alerts."+mode+".yml")
		for _, r := range alerts {
			require.Positive(t, fires[r.name()], "%s: %s never fires", mode, r.name())
			require.GreaterOrEqual(t, quiet[r.Alert], 2, "%s: %s", mode, r.Alert)
		}
	}
}
