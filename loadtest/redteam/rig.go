package redteam

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// rig is what an attack works with: a ferryman, the upstream behind it, and connections that end with the
// attack.
type rig struct {
	ctx    context.Context // ends when the attack's time is up, or ferryman takes too much memory
	addr   string
	secure bool
	up     *upstream
	pid    int
	sent   atomic.Int64 // bytes that attackers have sent
	read   atomic.Int64 // and received
	faults *faults

	mu      sync.Mutex // guards what follows
	conns   []*conn
	figures []figure
	checked int // answers that were looked at
}

// faults are wrong answers. The first few are told.
type faults struct {
	n     atomic.Int64
	mu    sync.Mutex // guards first
	first []string
}

func (f *faults) add(format string, args ...any) {
	f.n.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.first) < 5 {
		f.first = append(f.first, fmt.Sprintf(format, args...))
	}
}

// figure is a number that an attack is about, and its bound.
type figure struct {
	name       string
	got, bound float64
	least      bool  // the bound is the least that it may be
	why        error // what is wrong, where it is known
}

func (f figure) broken() bool { return f.least && f.got < f.bound || !f.least && f.got > f.bound }

func (f figure) String() string {
	relation := "at most"
	if f.least {
		relation = "at least"
	}
	s := fmt.Sprintf("%s %.6g (%s %.6g)", f.name, f.got, relation, f.bound)
	if f.why != nil {
		s += ": " + f.why.Error()
	}
	return s
}

func (r *rig) note(f figure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures = append(r.figures, f)
}

func (r *rig) atMost(name string, got, bound float64) {
	r.note(figure{name: name, got: got, bound: bound})
}

func (r *rig) atLeast(name string, got, bound float64, why error) {
	r.note(figure{name, got, bound, true, why})
}

// checks counts answers that were looked at.
func (r *rig) checks(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checked += n
}

// dialLimit is for a connect and a handshake, writeLimit for a write that ferryman takes.
const (
	dialLimit  = 10 * time.Second
	writeLimit = 5 * time.Second
)

// conn is an attacker's connection. It counts.
type conn struct {
	net.Conn
	tcp *net.TCPConn
	r   *rig
}

func (c *conn) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(writeLimit))
	n, err := c.Conn.Write(b)
	c.r.sent.Add(int64(n))
	return n, err
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.r.read.Add(int64(n))
	return n, err
}

// reset ends the connection with a TCP reset.
func (c *conn) reset() {
	_ = c.tcp.SetLinger(0)
	c.tcp.Close()
}

// dial opens a connection, with TLS where the ferryman under attack speaks it. readBuffer is the socket's; 0 leaves it
// to the system.
func (r *rig) dial(protocol string, readBuffer int) (*conn, error) {
	d := net.Dialer{Timeout: dialLimit}
	nc, err := d.DialContext(r.ctx, "tcp", r.addr)
	if err != nil {
		return nil, err
	}
	tcp := nc.(*net.TCPConn)
	if readBuffer > 0 {
		_ = tcp.SetReadBuffer(readBuffer)
	}
	c := &conn{Conn: tcp, tcp: tcp, r: r}
	r.mu.Lock()
	r.conns = append(r.conns, c)
	r.mu.Unlock()
	if r.secure {
		tc := tls.Client(tcp, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
		_ = tcp.SetDeadline(time.Now().Add(dialLimit))
		if err := tc.HandshakeContext(r.ctx); err != nil {
			c.reset()
			return nil, err
		}
		_ = tcp.SetDeadline(time.Time{})
		c.Conn = tc
	}
	return c, nil
}

// drop ends a connection in order.
func (r *rig) drop(c *conn) {
	c.tcp.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.conns, c); i >= 0 {
		r.conns = slices.Delete(r.conns, i, i+1)
	}
}

// leave has every attacker go.
func (r *rig) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.reset()
	}
}

// resident is what ferryman holds, in MiB.
func (r *rig) resident() float64 { return look(r.pid).resident }

// pause waits. It returns false where the attack is over.
func (r *rig) pause(d time.Duration) bool { return pause(r.ctx, d) }

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// until polls for a condition. It returns false where it did not come in time.
func (r *rig) until(d time.Duration, cond func() bool) bool {
	for end := time.Now().Add(d); !cond(); {
		if time.Now().After(end) || !r.pause(3*time.Millisecond) {
			return false
		}
	}
	return true
}

// each runs f for 0 to n-1 side by side, up to some at once, and waits. The errors come together.
func (r *rig) each(n, atOnce int, f func(i int) error) error {
	var (
		wait sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	slots := make(chan struct{}, atOnce)
	for i := range n {
		select {
		case slots <- struct{}{}:
		case <-r.ctx.Done():
			wait.Wait()
			return nil
		}
		wait.Go(func() {
			defer func() { <-slots }()
			if err := f(i); err != nil && r.ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				if len(errs) < 3 {
					errs = append(errs, err)
				}
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
