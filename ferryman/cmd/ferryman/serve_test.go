package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestServe_ReloadsOnEveryChangeAndOnHangup(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	b, _, _ := backend(t, "B")
	r := runWith(t, route("/", a))
	reloads := func(result string) string { return r.metric(`ferryman_config_reloads_total{result="` + result + `"}`) }
	start := reloads("success")
	answer := func() string { _, body := get(t, "http://"+r.front+"/"); return body }
	require.Equal(t, "A", answer())

	for _, want := range []string{"B", "A", "B"} {
		r.save(t, route("/", map[string]string{"A": a, "B": b}[want]))
		poll(t, patience, "the new route", func() bool { return answer() == want })
	}
	require.NotEqual(t, start, reloads("success"))

	require.Equal(t, "0", reloads("failure"))
	for range 3 {
		r.save(t, "nonsense = 1")
		poll(t, patience, "counted", func() bool { return reloads("failure") != "0" })
	}
	require.Equal(t, "B", answer())
	require.Equal(t, 1, strings.Count(r.output(), "unknown key"), "logged once")

	failures := reloads("failure")
	r.signal(syscall.SIGHUP)
	poll(t, patience, "read again", func() bool { return reloads("failure") != failures })
	require.Equal(t, 1, strings.Count(r.output(), "unknown key"), "the same error again is no news")

	r.save(t, route("/", a))
	poll(t, patience, "recovered", func() bool { return answer() == "A" })
	success := reloads("success")
	r.signal(syscall.SIGHUP)
	poll(t, patience, "reloaded unchanged", func() bool { return reloads("success") != success })
	r.signal(syscall.SIGTERM)
	require.Zero(t, r.status(5*time.Second))
}

// What is loaded at the start and found by the first look of the watch is one configuration.
func TestServe_StartIsNoReload(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	r := runWith(t, route("/", a))
	before := r.metric(`ferryman_config_reloads_total{result="success"}`)
	<-time.After(700 * time.Millisecond)
	require.Equal(t, before, r.metric(`ferryman_config_reloads_total{result="success"}`))
	require.NotContains(t, r.output(), "reloaded")
}

func TestServe_DrainsOnTheFirstSignal(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			a, waiting, release := backend(t, "A")
			r := runWith(t, route("/", a))
			answer := make(chan string, 1)
			go func() { _, body := fetch("GET", "http://"+r.front+"/wait"); answer <- body }()
			<-waiting
			r.signal(sig)
			poll(t, 5*time.Second, "refused", func() bool { s, _ := fetch("GET", "http://"+r.front+"/"); return s == 0 })
			s, _ := get(t, "http://"+r.metrics+"/readyz")
			require.Equal(t, 503, s)
			s, _ = get(t, "http://"+r.metrics+"/healthz")
			require.Equal(t, 200, s)
			close(release)
			require.Equal(t, "A", <-answer)
			require.Zero(t, r.status(5*time.Second))
		})
	}
}

func TestServe_IdleEndsAtOnce(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	began := time.Now()
	r := runWith(t, route("/", a))
	start := time.Since(began)
	began = time.Now()
	r.signal(syscall.SIGTERM)
	require.Zero(t, r.status(5*time.Second))
	require.Less(t, time.Since(began), 500*time.Millisecond+3*start, "that is no slower on a busy machine")
}

func TestServe_SecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	a, waiting, _ := backend(t, "A")
	r := runWith(t, route("/", a))
	go fetch("GET", "http://"+r.front+"/wait")
	<-waiting
	r.signal(syscall.SIGTERM)
	r.find("draining")
	r.signal(syscall.SIGHUP) // not a second request to end
	select {
	case <-r.exited:
		require.Fail(t, "ended with a request in flight")
	case <-time.After(300 * time.Millisecond):
	}
	r.signal(os.Interrupt)
	require.Equal(t, 1, r.status(patience), "long before the drain's limit")
}

// Conformance cases 252 and 255, in real time.
func TestServe_CutsAfterTheDrainLimit(t *testing.T) {
	t.Parallel()
	a, waiting, _ := backend(t, "A")
	r := runWith(t, "upstream_timeout_secs = 100\n"+route("/", a))
	go fetch("GET", "http://"+r.front+"/wait")
	<-waiting
	began := time.Now()
	r.signal(syscall.SIGTERM)
	require.Equal(t, 1, r.status(40*time.Second))
	require.GreaterOrEqual(t, time.Since(began), drainLimit)
	require.Equal(t, 1, strings.Count(r.output(), "cut="), "one line with the number that was cut")
}

// Conformance case 257.
func TestServe_SignalAtAnyMomentOfTheStartIsNoCrash(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	file := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, os.WriteFile(file, []byte(route("/", a)), 0o644))
	for i := range 20 {
		p := launch(t, "--config", file, "--bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0")
		<-time.After(time.Duration(i) * 4 * time.Millisecond)
		p.signal(syscall.SIGTERM)
		p.status(10 * time.Second)
		if !p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
			require.Zero(t, p.cmd.ProcessState.ExitCode(), p.output())
		}
	}
}

// Conformance case 257: SIGPIPE, sent and earned.
func TestServe_OutlivesItsLogsReader(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	r := &running{config: filepath.Join(t.TempDir(), "config.toml")}
	r.save(t, route("/", a))
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "--config", r.config, "--bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "FERRYMAN_TEST_PROCESS=1")
	reader, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line := make([]byte, 4096)
	n, err := reader.Read(line)
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	front := strings.Fields(string(line[bytes.Index(line[:n], []byte("clients="))+len("clients=") : n]))[0]
	for range 3 {
		require.NoError(t, cmd.Process.Signal(syscall.SIGHUP)) // logs a line
		require.NoError(t, cmd.Process.Signal(syscall.SIGPIPE))
		_, body := get(t, "http://"+front+"/")
		require.Equal(t, "A", body)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

func TestServe_BusyPortIsOneLineThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	file := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, os.WriteFile(file, []byte(route("/", a)), 0o644))
	for _, flag := range []string{"bind", "metrics-bind"} {
		args := []string{"--config", file, "--bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0", "--" + flag, a}
		var stdout, stderr bytes.Buffer
		require.Equal(t, 1, run(t.Context(), args, func(string) string { return "" }, &stdout, &stderr))
		require.Equal(t, "ferryman: "+a+": address already in use: stop the other program or pass --"+flag+"\n", stderr.String())
		require.Empty(t, stdout.String())
	}
}

func TestServe_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	file := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, os.WriteFile(file, []byte(route("/", a)), 0o644))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	args := []string{"--config", file, "--bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0", "--log-level", "error"}
	require.Zero(t, run(ctx, args, func(string) string { return "" }, &stdout, &stderr))
	require.Empty(t, stdout.String()+stderr.String())
}

func TestServe_LogsJSONWhenAsked(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	r := runWith(t, route("/", a), "--log-format", "json", "--log-level", "debug")
	get(t, "http://"+r.front+"/")
	r.signal(syscall.SIGTERM)
	require.Zero(t, r.status(5*time.Second))
	for line := range strings.Lines(r.output()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	require.Contains(t, r.output(), `"msg":"drained"`)
}

func TestServe_EitherEngine(t *testing.T) {
	for _, engine := range []string{"auto", "goroutines", "loops"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			a, _, _ := backend(t, "A")
			r := runWith(t, route("/", a), "--engine", engine)
			_, body := get(t, "http://"+r.front+"/")
			require.Equal(t, "A", body)
		})
	}
}

func TestHealthcheck_AsksTheRunningProxy(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	r := runWith(t, route("/", a))
	_, port, err := net.SplitHostPort(r.metrics)
	require.NoError(t, err)
	env := func(name string) string { return map[string]string{"FERRYMAN_METRICS_BIND": "0.0.0.0:" + port}[name] }
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"healthcheck"}, env, &stdout, &stderr), stderr.String())
	require.Zero(t, run(t.Context(), []string{"healthcheck", "--metrics-bind", ":" + port}, env, &stdout, &stderr), stderr.String())
	require.Equal(t, "ok\nok\n", stdout.String())

	_, frontPort, err := net.SplitHostPort(r.front)
	require.NoError(t, err)
	r.save(t, route("/only", a))
	poll(t, patience, "404", func() bool { s, _ := get(t, "http://"+r.front+"/healthz"); return s == 404 })
	require.Equal(t, 1, run(t.Context(), []string{"healthcheck", "--metrics-bind", "0.0.0.0:" + frontPort}, env, &stdout, &stderr))
	require.Contains(t, stderr.String(), "answered 404 Not Found: this is hardly ferryman")
}

func TestReachable_LoopbackForAnyAddress(t *testing.T) {
	for bind, want := range map[string]string{
		"0.0.0.0:9090": "127.0.0.1:9090", ":9090": "127.0.0.1:9090", "[::]:9090": "[::1]:9090",
		"10.0.0.1:9090": "10.0.0.1:9090", "[fd00::1]:1": "[fd00::1]:1", "metrics.internal:80": "metrics.internal:80",
	} {
		require.Equal(t, want, reachable(bind), bind)
	}
}

// pair writes a certificate for name and its key.
func pair(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	return pairUntil(t, dir, name, time.Now().Add(1000*time.Hour))
}

func pairUntil(t *testing.T, dir, name string, end time.Time) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return certFile, keyFile
}

// served is the name in the certificate that a new handshake gets.
func served(t *testing.T, addr string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
}

// Conformance case 243.
func TestServe_TLSPairIsReloadedByHangupAndByChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, _, _ := backend(t, "A")
	oneCert, oneKey := pair(t, dir, "one")
	twoCert, twoKey := pair(t, dir, "two")
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	use := func(from, to string) { require.NoError(t, exec.Command("cp", from, to).Run()) }
	use(oneCert, cert)
	use(oneKey, key)
	r := runWith(t, route("/", a), "--tls-cert", cert, "--tls-key", key)
	require.Equal(t, "one", served(t, r.front))

	use(twoCert, cert) // without its key
	r.signal(syscall.SIGHUP)
	r.find("certificate rejected")
	require.Equal(t, "one", served(t, r.front))
	use(twoKey, key)
	r.signal(syscall.SIGHUP)
	poll(t, patience, "the new pair", func() bool { return served(t, r.front) == "two" })

	use(oneKey, key)
	use(oneCert, cert)
	poll(t, patience, "the pair without a signal", func() bool { return served(t, r.front) == "one" })
	r.signal(syscall.SIGTERM)
	require.Zero(t, r.status(5*time.Second))
}

func TestServe_BadTLSPairIsOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	oneCert, oneKey := pair(t, dir, "one")
	_, twoKey := pair(t, dir, "two")
	file := filepath.Join(dir, "config.toml")
	require.NoError(t, os.WriteFile(file, []byte(route("/", "127.0.0.1:1")), 0o644))
	for _, c := range [][2]string{{oneCert, twoKey}, {oneKey, oneCert}, {oneCert, dir}, {file, oneKey}, {oneCert, filepath.Join(dir, "nothing")}} {
		var stdout, stderr bytes.Buffer
		args := []string{"--config", file, "--bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0", "--tls-cert", c[0], "--tls-key", c[1]}
		require.Equal(t, 1, run(t.Context(), args, func(string) string { return "" }, &stdout, &stderr))
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
		require.Contains(t, stderr.String(), "see --tls-cert and --tls-key")
	}
}

func TestServe_HangupAsksForNamesAnew(t *testing.T) {
	t.Parallel()
	r := runWith(t, route("/", "no-such-host.invalid:80"))
	r.signal(syscall.SIGHUP)
	r.find(`msg="name not resolved.*upstream=no-such-host.invalid:80`)
}
