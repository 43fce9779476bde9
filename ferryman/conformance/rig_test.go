package conformance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman"
	"github.com/Bunty9/ferryman/ferryman/config"
	"github.com/Bunty9/ferryman/ferryman/internal/limits"
)

// All timing of the suite is here. The short ones are what a case waits for on purpose, patience is
// how long a loaded machine may take for something that is immediate on an idle one.
const (
	upstreamTimeout = 400 * time.Millisecond
	connectTimeout  = 200 * time.Millisecond
	cooldown        = 300 * time.Millisecond
	bodyIdle        = 300 * time.Millisecond
	clientIdle      = 1000 * time.Millisecond
	shortHead       = 400 * time.Millisecond // in place of the fixed 10 s
	quiet           = 60 * time.Millisecond  // long enough to notice bytes that must not come
	patience        = 30 * time.Second
	soon            = patience / 2 // what a short limit ends has ended by then; what it does not end lasts for patience
)

// scale multiplies the counts of the heavy cases.
var scale = func() float64 {
	if f, err := strconv.ParseFloat(os.Getenv("FERRYMAN_CONFORMANCE_SCALE"), 64); err == nil && f > 0 {
		return f
	}
	return 1
}()

func scaled(n int) int { return max(1, int(float64(n)*scale)) }

// mode is one way to reach the HTTP/1.1 code.
type mode struct {
	name   string
	engine string
	tls    bool
}

var (
	goroutines = mode{"goroutines", "goroutines", false}
	loops      = mode{"loops", "loops", false}
	tlsH1      = mode{"tls", "goroutines", true}
	tlsLoops   = mode{"tls loops", "loops", true}
)

func modes() []mode { return append(plainModes(), tlsModes()...) }

func plainModes() []mode { return onThisSystem(goroutines, loops) }

func tlsModes() []mode { return onThisSystem(tlsH1, tlsLoops) }

func onThisSystem(modes ...mode) []mode {
	return slices.DeleteFunc(modes, func(m mode) bool { return m.engine == "loops" && runtime.GOOS != "linux" })
}

// forEachMode runs one body in every mode, or in those given, in parallel.
func forEachMode(t *testing.T, body func(t *testing.T, m mode), only ...mode) {
	t.Helper()
	t.Parallel()
	if len(only) == 0 {
		only = modes()
	}
	for _, m := range only {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			body(t, m)
		})
	}
}

// forEachModeAlone is forEachMode for what looks at the memory of the whole process.
func forEachModeAlone(t *testing.T, body func(t *testing.T, m mode)) {
	t.Helper()
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) { body(t, m) })
	}
}

// setup is what a case may change before the proxy is built.
type setup struct {
	cfg             config.Config
	head, handshake time.Duration // 0: the default of 10 s
	unread          int64         // bytes of bodies that may wait; 0: the default of 256 MiB
	listen          string
	resolver        *net.Resolver
	noVerdicts      bool // the case shuts the proxy down, or breaks it, itself
	recordMax       int  // bytes recorded for each connection; 0: 4 MiB
	alone           bool // there is one loop
}

// oneLoop is for cases that count connections to an upstream. Where there are more loops a client's connection may
// move from one to another, as on a machine that is busy, and each has a pool of its own.
func oneLoop(s *setup) { s.alone = true }

// rig is one proxy between raw clients and scripted upstreams.
type rig struct {
	t      testing.TB
	mode   mode
	id     string
	U      [6]*upstream // U[1] to U[5]
	down   string
	proxy  *ferryman.Proxy
	cfg    config.Config
	addr   string
	log    *logSink
	served chan error

	noVerdicts bool
	hasty      bool // its limit on handshakes is short
	reloaded   bool // series may have gone
	mu         sync.Mutex
	clients    []*client
	finals     atomic.Int64 // complete responses that clients read
	stop       sync.Once
}

var rigs atomic.Int64

// newRig builds the routes of the rig: / U1, /api U2, /api/v1 U3, /ws U4 (upgrade), /strip U5
// (strip_prefix), /down a closed port, /black an address that drops SYN. Timeouts are long and the
// circuit never opens unless the case says otherwise, so that a slow machine changes no result.
func newRig(t testing.TB, m mode, options ...func(*setup)) *rig {
	t.Helper()
	r := &rig{t: t, mode: m, id: strconv.FormatInt(rigs.Add(1), 10), log: &logSink{}, served: make(chan error, 1)}
	for i := 1; i <= 5; i++ {
		r.U[i] = newUpstream(t, fmt.Sprintf("U%d", i))
	}
	r.down = closedPort(t)
	s := setup{cfg: config.Default(), listen: "127.0.0.1:0"}
	s.cfg.HealthInterval, s.cfg.HealthTimeout = time.Hour, time.Second
	s.cfg.DefaultCooldown = cooldown
	s.cfg.FailureThreshold = 1_000_000
	s.cfg.UpstreamTimeout = 2 * patience
	s.cfg.ConnectTimeout = patience
	s.cfg.ClientIdleTimeout = time.Minute
	s.cfg.Routes = []config.Route{
		{Prefix: "/", Upstream: r.U[1].addr},
		{Prefix: "/api", Upstream: r.U[2].addr},
		{Prefix: "/api/v1", Upstream: r.U[3].addr},
		{Prefix: "/ws", Upstream: r.U[4].addr, Upgrade: true},
		{Prefix: "/strip", Upstream: r.U[5].addr, StripPrefix: true},
		{Prefix: "/down", Upstream: r.down},
		{Prefix: "/black", Upstream: blackhole(t)},
	}
	for _, o := range options {
		o(&s)
	}
	if s.recordMax != 0 {
		for _, u := range r.U[1:] {
			u.recordMax = s.recordMax
		}
	}
	r.cfg, r.noVerdicts, r.hasty = s.cfg, s.noVerdicts, s.handshake != 0
	r.start(s)
	t.Cleanup(r.finish)
	return r
}

var limitsMu sync.Mutex

func (r *rig) start(s setup) {
	ln, err := net.Listen("tcp", s.listen)
	require.NoError(r.t, err)
	r.addr = ln.Addr().String()
	// What the proxy starts inherits the label: goroutines can be told apart although many rigs
	// share the process.
	pprof.Do(context.Background(), pprof.Labels("rig", r.id), func(context.Context) {
		limitsMu.Lock()
		head, handshake, unread := limits.Head, limits.Handshake, limits.Unread
		if s.head != 0 {
			limits.Head = s.head
		}
		if s.handshake != 0 {
			limits.Handshake = s.handshake
		}
		if s.unread != 0 {
			limits.Unread = s.unread
		}
		processors := runtime.GOMAXPROCS(0)
		if s.alone {
			runtime.GOMAXPROCS(1) // as many loops as processors
		}
		r.proxy, err = ferryman.New(s.cfg, ferryman.Options{Engine: r.mode.engine, Logger: r.log.logger(), Version: "test", Resolver: s.resolver})
		runtime.GOMAXPROCS(processors)
		limits.Head, limits.Handshake, limits.Unread = head, handshake, unread
		limitsMu.Unlock()
		require.NoError(r.t, err)
		go r.serve(ln)
	})
	// The listener takes connections before Serve runs: wait for an answer. A case's own short limits may
	// close the first attempts.
	eventually(r.t, func() bool {
		c, err := r.tryDial(clientTLS, 0)
		if err != nil {
			return false
		}
		defer c.close()
		c.send("rig\r\n\r\n")
		m, err := c.response("GET")
		return err == nil && m.status == 400
	}, "the proxy does not serve")
}

func (r *rig) serve(ln net.Listener) {
	if !r.mode.tls {
		r.served <- r.proxy.Serve(ln)
		return
	}
	cert, err := ferryman.LoadCertificate(testCert.certFile, testCert.keyFile)
	if err != nil {
		r.served <- err
		return
	}
	r.served <- r.proxy.ServeTLS(ln, cert)
}

// metrics scrapes the page; keys are series as printed, for instance `ferryman_up{upstream="a:1"}`.
func (r *rig) metrics() map[string]float64 {
	rec := httptest.NewRecorder()
	r.proxy.MetricsHandler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	m := map[string]float64{}
	for line := range strings.Lines(rec.Body.String()) {
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSpace(line[i+1:]), 64); err == nil {
			m[line[:i]] = v
		}
	}
	return m
}

// sum adds up the series whose text starts with prefix and contains every part.
func (r *rig) sum(prefix string, parts ...string) float64 { return sum(r.metrics(), prefix, parts...) }

func sum(m map[string]float64, prefix string, parts ...string) float64 {
	var total float64
series:
	for k, v := range m {
		if !strings.HasPrefix(k, prefix) {
			continue
		}
		for _, p := range parts {
			if !strings.Contains(k, p) {
				continue series
			}
		}
		total += v
	}
	return total
}

func (r *rig) state(u *upstream) int {
	return int(r.metrics()[fmt.Sprintf("ferryman_circuit_state{upstream=%q}", u.addr)])
}

func (r *rig) transitions(u *upstream, to string) int {
	return int(r.metrics()[fmt.Sprintf("ferryman_circuit_transitions_total{to=%q,upstream=%q}", to, u.addr)])
}

func (r *rig) answered(status int) int {
	return int(r.sum("ferryman_requests_total", fmt.Sprintf(`status="%d"`, status)))
}

func (r *rig) reload(t *testing.T, change func(*config.Config)) {
	t.Helper()
	c := r.cfg
	c.Routes = append([]config.Route(nil), c.Routes...)
	change(&c)
	require.NoError(t, r.proxy.Reload(c))
	r.reloaded = r.reloaded || !slices.Equal(c.Routes, r.cfg.Routes)
	r.cfg = c
}

// during changes the configuration for one step only, so that a short timeout of a case cannot strike
// what comes before and after.
func (r *rig) during(t *testing.T, change func(*config.Config), step func()) {
	t.Helper()
	before := r.cfg
	r.reload(t, change)
	step()
	r.reload(t, func(c *config.Config) { *c = before })
}

// eventually polls until cond holds.
func eventually(t testing.TB, cond func() bool, format string, args ...any) {
	t.Helper()
	if !within(patience, cond) {
		require.Failf(t, "not in time", format, args...)
	}
}

func within(d time.Duration, cond func() bool) bool {
	for end := time.Now().Add(d); ; {
		if cond() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		pause(3 * time.Millisecond)
	}
}

// pause is a part of a script on the wire or of a poll, never a guess at how long something takes.
func pause(d time.Duration) { <-time.After(d) }

type certFiles struct{ certFile, keyFile string }

var testCert certFiles

// makeCert writes a self-signed pair for localhost.
func makeCert(dir, name string) (certFiles, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certFiles{}, err
	}
	tpl := x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{"localhost", name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &tpl, &tpl, &key.PublicKey, key)
	if err != nil {
		return certFiles{}, err
	}
	pk, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return certFiles{}, err
	}
	f := certFiles{filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")}
	if err = os.WriteFile(f.certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return f, err
	}
	return f, os.WriteFile(f.keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pk}), 0o600)
}

var clientTLS = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}
