package ferryman

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// chopped is a connection whose writes arrive in small pieces, so that its peer finds frames that are not
// whole.
type chopped struct{ net.Conn }

func (c chopped) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var k int
		k, err = c.Conn.Write(b[n:min(n+1+rand.IntN(60), len(b))])
		n += k
		runtime.Gosched()
	}
	return n, err
}

// clientOverH2 is a client with one connection.
func clientOverH2(secure bool) *http.Client {
	var p http.Protocols
	p.SetHTTP2(secure)
	p.SetUnencryptedHTTP2(!secure)
	return &http.Client{Timeout: patience, Transport: &http.Transport{
		Protocols: &p, MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return chopped{c}, err
		},
	}}
}

// askH2 sends a request with a body of its own and wants its own answer.
func askH2(c *http.Client, base string, who, i int) error {
	path := fmt.Sprintf("/%d/%d", who, i)
	body := strings.Repeat(path, 500*(i%4))
	r, err := c.Post(base+path, "", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if want := path + " " + body; err != nil || string(got) != want {
		return fmt.Errorf("%d: %.80q instead of %.80q: %w", r.StatusCode, got, want, err)
	}
	return nil
}

// HTTP/2 connections move between event loops, too, with streams that are held back meanwhile. Then a drain
// comes while they move, or the end.
func TestMove_StreamsAreServedWhereverTheirConnectionGoes(t *testing.T) {
	for i := range 4 {
		secure, drained := i%2 == 1, i < 2
		t.Run(fmt.Sprintf("tls=%t drained=%t", secure, drained), func(t *testing.T) {
			serve, scheme := startProxy, "http://"
			if secure {
				serve, scheme = startTLSProxy, "https://"
			}
			p, addr := serve(t, "", testConfig(map[string]string{"/": startUpstream(t, mirroring)}))
			stop := shuffle(p)
			if stop == nil {
				return // one executor
			}
			var talking sync.WaitGroup
			for i := range 8 {
				c := clientOverH2(secure)
				for j := range i%4 + 1 { // streams at a time
					talking.Go(func() {
						for k := range 60 {
							if err := askH2(c, scheme+addr, 10*i+j, k); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
			}
			talking.Wait()

			var asked atomic.Int64
			for i := range 8 {
				c := clientOverH2(secure)
				for j := range i%4 + 1 {
					talking.Go(func() {
						for k := 0; ; k++ {
							err := askH2(c, scheme+addr, 10*i+j, k)
							if err == nil {
								asked.Add(1)
								continue
							}
							// After the goodbye there is nobody to connect to.
							if drained && !errors.Is(err, syscall.ECONNREFUSED) {
								t.Error(err)
							}
							return
						}
					})
				}
			}
			require.Eventually(t, func() bool { return asked.Load() > 500 }, patience, time.Millisecond)
			if drained {
				require.NoError(t, <-shutdown(p, patience))
			} else {
				require.NoError(t, p.Close())
			}
			talking.Wait()
			stop()
			a, i := p.clients.count()
			require.Zero(t, a+i)
		})
	}
}

// restless is an executor that only takes note of what it is to start, and a socket of it.
type restless struct {
	netloop.Executor // what is not used here
	net.Conn
	started  []func()
	posted   chan func()
	deadline time.Time
	written  func()
}

func (r *restless) Go(f func())                         { r.started = append(r.started, f) }
func (r *restless) Post(f func())                       { r.posted <- f }
func (r *restless) Now() time.Time                      { return time.Now() }
func (r *restless) SetReadDeadline(at time.Time) error  { r.deadline = at; return nil }
func (r *restless) SetWriteDeadline(at time.Time) error { return nil }

func (r *restless) Write(b []byte) (int, error) {
	r.written()
	return len(b), nil
}

func TestMove_WaitsForTheSenderAndForTheFrame(t *testing.T) {
	p, _ := startProxy(t, "goroutines", testConfig(map[string]string{"/": "127.0.0.1:1"}))
	ex, n := &restless{}, 0
	c := &clientH2{p: p, ex: ex, conn: ex, transferH2: transferH2{to: ex}}
	c.send = c.flush
	ex.written = func() {
		if n++; n <= maxRounds { // who sends finds more each time, until it leaves that to another
			c.mu.Lock()
			c.ping(0, parting)
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	c.ping(0, parting)
	require.NoError(t, c.flushLocked())
	require.NoError(t, c.flushLocked()) // a third sends the rest
	require.False(t, c.mayMove(), "the other one is still to come")
	c.begun = true
	c.mu.Unlock()
	require.Len(t, ex.started, 1)
	ex.started[0]()
	require.True(t, c.mayMove())
	require.Zero(t, ex.deadline, "the reader is within a frame")
	c.begun = false
	c.settle()
	require.NotZero(t, ex.deadline)
}

// fakeEvent tells whether it was set.
type fakeEvent struct{ set bool }

func (g *fakeEvent) Set()  { g.set = true }
func (g *fakeEvent) Wait() {}

// The time of a wait may run out when the wait is over: by then others, of another loop even, may wait there.
func TestStream_ALateTimerWakesNobody(t *testing.T) {
	p, _ := startProxy(t, "goroutines", testConfig(map[string]string{"/": "127.0.0.1:1"}))
	snap := *p.snapshot.Load()
	snap.config.BodyIdleTimeout = time.Millisecond
	ex := &restless{Executor: p.goroutines, posted: make(chan func(), 1)}
	s := &streamH2{c: &clientH2{p: p, ex: ex}}
	s.e.snap = &snap
	waited := make(chan error)
	go func() {
		s.c.mu.Lock()
		defer s.c.mu.Unlock()
		waited <- s.wait(&s.wake)
	}()
	late := <-ex.posted
	s.c.mu.Lock()
	s.wake.wakeAll()
	s.c.mu.Unlock()
	require.NoError(t, <-waited)
	next := &fakeEvent{}
	s.wake.events = append(s.wake.events, next)
	late()
	require.False(t, next.set)
}
