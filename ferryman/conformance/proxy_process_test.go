package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman"
	"github.com/Bunty9/ferryman/ferryman/config"
	"github.com/Bunty9/ferryman/ferryman/internal/limits"
)

// What concerns a whole process (a stop, a limit on descriptors) needs a proxy in one of its own: this test binary
// again, which is told in JSON what to be.
type processSpec struct {
	Engine    string
	Config    config.Config
	Cert, Key string        // files; none: plaintext
	Head      time.Duration // 0: the default of 10 s
	DNS       string        // the name server; none: the system's
}

// serveAs is the child: it serves, prints its two addresses, and ends when its standard input does.
func serveAs(spec string) error {
	var s processSpec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return err
	}
	if s.Head != 0 {
		limits.Head = s.Head
	}
	o := ferryman.Options{Engine: s.Engine, Version: "test", Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if s.DNS != "" {
		o.Resolver = asking(s.DNS)
	}
	p, err := ferryman.New(s.Config, o)
	if err != nil {
		return err
	}
	clients, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	metrics, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go http.Serve(metrics, p.MetricsHandler()) //nolint:gosec // of a test, for its parent
	ended := make(chan error, 1)
	go func() {
		if s.Cert == "" {
			ended <- p.Serve(clients)
			return
		}
		cert, err := ferryman.LoadCertificate(s.Cert, s.Key)
		if err != nil {
			ended <- err
			return
		}
		ended <- p.ServeTLS(clients, cert)
	}()
	fmt.Println(clients.Addr(), metrics.Addr())
	obey(os.Stdin)
	if err = p.Close(); err != nil {
		return err
	}
	return <-ended
}

// obey does what its parent says, and says when it is done.
func obey(in io.Reader) {
	var taken []*os.File
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch lines.Text() {
		case "take all descriptors":
			limit := syscall.Rlimit{Cur: 200, Max: 200}
			_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
			for {
				f, err := os.Open(os.DevNull)
				if err != nil {
					break
				}
				taken = append(taken, f)
			}
		case "give them back":
			for _, f := range taken {
				f.Close()
			}
		}
		fmt.Println("done")
	}
}

// proxyProcess is such a child, with what raw clients need of a rig.
type proxyProcess struct {
	*rig
	cmd     *exec.Cmd
	metrics string
	in      io.Writer
	out     *bufio.Reader
	scraper http.Client // it keeps its connection
	end     func()
}

func startProcess(t *testing.T, m mode, s processSpec) *proxyProcess {
	t.Helper()
	s.Engine = m.engine
	if m.tls {
		s.Cert, s.Key = testCert.certFile, testCert.keyFile
	}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	p := &proxyProcess{rig: &rig{t: t, mode: m, log: &logSink{}, cfg: s.Config}, cmd: exec.Command(os.Args[0]),
		scraper: http.Client{Transport: new(http.Transport), Timeout: patience}}
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	p.cmd.Stderr = p.log
	in, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	stuck := time.AfterFunc(4*patience, func() { _ = p.cmd.Process.Kill() })
	p.end = sync.OnceFunc(func() {
		defer stuck.Stop()
		for _, c := range p.clients {
			c.close()
		}
		p.scraper.CloseIdleConnections()
		in.Close()
		require.NoError(t, p.cmd.Wait(), "%s", p.log.text())
		p.log.noPanic(t)
		if t.Failed() {
			t.Logf("log of the proxy:\n%s", p.log.text())
		}
	})
	t.Cleanup(p.end)
	p.in, p.out = in, bufio.NewReader(out)
	_, err = fmt.Fscanln(p.out, &p.addr, &p.metrics)
	require.NoError(t, err, "%s", p.log.text())
	return p
}

// tell has the child obey.
func (p *proxyProcess) tell(command string) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in, command)
	require.NoError(p.t, err)
	done, err := p.out.ReadString('\n')
	require.NoError(p.t, err)
	require.Equal(p.t, "done\n", done)
}

// scrape is the rig's metrics, from the child.
func (p *proxyProcess) scrape() map[string]float64 {
	resp, err := p.scraper.Get("http://" + p.metrics + "/metrics")
	require.NoError(p.t, err)
	defer resp.Body.Close()
	m := map[string]float64{}
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		name, value, _ := strings.Cut(in.Text(), "} ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			m[name+"}"] = v
		}
	}
	return m
}

// paused runs a step while the process is stopped. It returns false, and does not, where the machine was too busy to stop
// it before a limit that began at a moment had passed.
func (p *proxyProcess) paused(since time.Time, limit time.Duration, step func()) bool {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGSTOP))
	defer func() { require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGCONT)) }()
	var is syscall.WaitStatus
	_, err := syscall.Wait4(p.cmd.Process.Pid, &is, syscall.WUNTRACED, nil)
	require.NoError(p.t, err)
	require.True(p.t, is.Stopped())
	if time.Since(since) >= limit {
		return false
	}
	step()
	return true
}
