package contender

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/Bunty9/ferryman/benches/compare/proc"
)

// Upstream is the program that answers behind all contenders.
type Upstream struct {
	Addr    string // of the data port
	admin   string
	process *proc.Process
}

// StartUpstream starts the program echo, which is the path of an echo-upstream. Stop must be called.
func StartUpstream(ctx context.Context, echo, dir string) (*Upstream, error) {
	data, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	admin, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(echo, "--data-bind", data, "--admin-bind", admin, "--instance", "bench")
	p, err := proc.Start("echo-upstream", cmd, dir)
	if err != nil {
		return nil, err
	}
	if err := Listening(ctx, p, data); err != nil {
		p.Stop(0)
		return nil, err
	}
	return &Upstream{Addr: data, admin: admin, process: p}, nil
}

// Stop ends the upstream.
func (u *Upstream) Stop() { u.process.Stop(stopGrace) }

// PIDs are the upstream's processes.
func (u *Upstream) PIDs() []int { return proc.Tree(u.process.PID()) }

// Answered is how many requests the upstream has answered so far.
func (u *Upstream) Answered(ctx context.Context) (int64, error) {
	n, err := scrape(ctx, u.admin, "echo_requests_total")
	return int64(n), err
}

// Get is the body of the upstream's own answer.
func (u *Upstream) Get(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	direct := Running{Site: Site{Listen: u.Addr}}
	client := direct.client(false)
	defer client.CloseIdleConnections()
	return direct.ask(ctx, client, Request{Method: method, Body: body}, path)
}

// Allocations is how many objects the contender's runtime has allocated so far.
func (r *Running) Allocations(ctx context.Context) (float64, error) {
	return scrape(ctx, r.Site.Metrics, "go_memstats_mallocs_total")
}

// scrape is the sum of a metric's series.
func scrape(ctx context.Context, addr, name string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return sumOf(response.Body, name)
}

// sumOf adds up the series of a metric in the text format. None is an error.
func sumOf(page io.Reader, name string) (float64, error) {
	sum, found := 0.0, false
	scan := bufio.NewScanner(page)
	for scan.Scan() {
		rest, ok := strings.CutPrefix(scan.Text(), name)
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		value := rest[strings.LastIndexByte(rest, ' ')+1:]
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		sum, found = sum+n, true
	}
	if err := scan.Err(); err != nil {
		return 0, err
	}
	if !found {
		return 0, fmt.Errorf("no metric %s", name)
	}
	return sum, nil
}
