package main

import (
	"encoding/json"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/prometheus"
)

// startPrometheus starts one on the lab's targets if there is one: PROMETHEUS_BIN or prometheus.
func (l *lab) startPrometheus(t *testing.T) {
	t.Helper()
	bin := os.Getenv("PROMETHEUS_BIN")
	if bin == "" {
		bin = "prometheus"
	}
	if _, err := exec.LookPath(bin); err != nil {
		if os.Getenv("LAB_REQUIRE_PROMETHEUS") == "1" {
			require.NoError(t, err, "install Prometheus, or name its binary in PROMETHEUS_BIN")
		}
		return
	}
	dir := filepath.Join(l.dir, "prometheus")
	require.NoError(t, prometheus.Write(dir, l.targets()))
	p := start(t, bin, prometheus.Flags(dir, "127.0.0.1:0")...)
	l.prometheus = "http://" + p.find(t, l.limit, `msg="Listening on".* address=([0-9.:]+)`)
}

// result is an answer of Prometheus.
type result struct {
	Status, Error string
	Data          struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any // seconds and the value as text
			Value  [2]any
		}
	}
}

func (l *lab) query(t *testing.T, path string, arguments url.Values) (r result) {
	t.Helper()
	status, answer := ask(t.Context(), "GET", l.prometheus+"/api/v1/"+path+"?"+arguments.Encode(), "")
	if status == 0 || status == 503 {
		return result{Status: "success"} // it is not ready: nothing yet
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &r), answer)
	require.Equal(t, "success", r.Status, "%s: %s", r.Error, arguments.Get("query"))
	return r
}

// numbers counts what a range query over the life of the lab returned that is a number.
func (l *lab) numbers(t *testing.T, expr string) (n int) {
	t.Helper()
	r := l.query(t, "query_range", url.Values{
		"query": {expr}, "start": {seconds(l.began)}, "end": {seconds(time.Now())}, "step": {"1"},
	})
	for _, series := range r.Data.Result {
		for _, v := range series.Values {
			f, err := strconv.ParseFloat(v[1].(string), 64)
			require.NoError(t, err)
			if !math.IsNaN(f) && !math.IsInf(f, 0) {
				n++
			}
		}
	}
	return n
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// fired are the alerts that fired since the lab began.
func (l *lab) fired(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	r := l.query(t, "query", url.Values{"query": {`count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[5m]))`}})
	for _, series := range r.Data.Result {
		names[series.Metric["alertname"]] = true
	}
	return names
}

// untilFired waits for all of the alerts.
func (l *lab) untilFired(t *testing.T, alerts ...string) {
	t.Helper()
	missing := ""
	l.until(t, func() bool {
		missing = ""
		fired := l.fired(t)
		for _, name := range alerts {
			if !fired[name] {
				missing += " " + name
			}
		}
		return missing == ""
	}, func() string { return "did not fire:" + missing })
}

// untilScraped waits until every target was.
func (l *lab) untilScraped(t *testing.T) {
	t.Helper()
	l.until(t, func() bool {
		r := l.query(t, "query", url.Values{"query": {`sum(up)`}})
		return len(r.Data.Result) == 1 && r.Data.Result[0].Value[1] == "5"
	}, func() string { return "not all five targets are up" })
}

// interpolated is an expression as Grafana sends it, for a scrape each second and a panel of a minute.
func interpolated(expr string) string {
	return strings.NewReplacer("$__rate_interval", "4s", "$__range", "60s").Replace(expr)
}
