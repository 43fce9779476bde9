package echo

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// page writes the text exposition format. Names and labels come from this package only.
type page struct{ bytes.Buffer }

func (p *page) family(name, kind, help string) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (p *page) value(name, label, labelValue string, v float64) {
	p.WriteString(name)
	if label != "" {
		fmt.Fprintf(p, "{%s=%q}", label, labelValue)
	}
	p.WriteByte(' ')
	p.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	p.WriteByte('\n')
}

func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	p := &page{}
	p.family("echo_info", "gauge", "Always 1; the label names the instance.")
	p.value("echo_info", "instance_name", s.instance, 1)
	s.answerMetrics(p)
	s.faultMetrics(p)
	p.family("echo_connections", "gauge", "Client connections that are open on the data port.")
	p.value("echo_connections", "", "", float64(s.openNow.Load()))
	p.family("echo_connections_opened_total", "counter", "Client connections that the data port accepted.")
	p.value("echo_connections_opened_total", "", "", float64(s.opened.Load()))
	p.family("echo_cpu_seconds_total", "counter", "Processor time of this process.")
	p.value("echo_cpu_seconds_total", "", "", processTime().Seconds())
	p.family("echo_start_time_seconds", "gauge", "When this process started, in Unix time.")
	p.value("echo_start_time_seconds", "", "", float64(s.started.UnixMilli())/1000)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(p.Bytes()) // the scraper left: nothing to do
}

// answerMetrics shows every endpoint's 200, zero or not, so that a rate exists from the start.
func (s *Server) answerMetrics(p *page) {
	p.family("echo_requests_total", "counter", "Answers of the data port by endpoint and status.")
	for e := range s.answers {
		for status := range s.answers[e] {
			n := s.answers[e][status].Load()
			if n > 0 || status == http.StatusOK {
				fmt.Fprintf(p, "echo_requests_total{endpoint=%q,status=\"%d\"} %d\n", endpointNames[e], status, n)
			}
		}
	}
}

func (s *Server) faultMetrics(p *page) {
	p.family("echo_faults_total", "counter", "Requests that met a fault, by its kind.")
	for k := range s.faults {
		p.value("echo_faults_total", "kind", kindNames[k], float64(s.faults[k].Load()))
	}
	f := s.fault()
	p.family("echo_fault", "gauge", "The fault in force: seconds, a share, or 1 for on; 0 is none.")
	p.value("echo_fault", "kind", "latency", time.Duration(f.Latency).Seconds())
	p.value("echo_fault", "kind", "jitter", time.Duration(f.Jitter).Seconds())
	p.value("echo_fault", "kind", "error", f.ErrorRate)
	p.value("echo_fault", "kind", "hang", flag(f.Hang))
	p.value("echo_fault", "kind", "reset", flag(f.Reset))
	p.value("echo_fault", "kind", "slow_body", time.Duration(f.SlowBody).Seconds())
	p.value("echo_fault", "kind", "health_ok", flag(f.Health == HealthOK))
	p.value("echo_fault", "kind", "health_fail", flag(f.Health == HealthFail))
	p.family("echo_fault_changes_total", "counter", "How often the fault was set or healed.")
	p.value("echo_fault_changes_total", "", "", float64(s.faultChanges.Load()))
	p.family("echo_held_connections", "gauge", "Connections that the fault hang holds.")
	p.value("echo_held_connections", "", "", float64(s.held.Load()))
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
