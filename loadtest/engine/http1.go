package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/Bunty9/ferryman/loadtest/result"
	"github.com/Bunty9/ferryman/loadtest/wire"
)

// http1Transport is an HTTP/1.1 connection of one worker, with or without TLS.
//
// It does not watch an idle connection: one that the target closed in the meantime shows as a reset.
type http1Transport struct {
	r       *Runner
	target  *target
	conn    net.Conn // nil: not connected
	buffer  []byte
	scanner wire.Scanner
}

func (t *http1Transport) connected() bool { return t.conn != nil }

func (t *http1Transport) open(deadline time.Time) error {
	if t.conn != nil {
		return nil
	}
	c, err := t.r.dial(t.target, deadline, "http/1.1")
	if err != nil {
		return err
	}
	t.conn = c
	t.r.open.Add(1)
	return nil
}

// dial connects to a target and shakes hands where it speaks TLS.
func (r *Runner) dial(t *target, deadline time.Time, protocol string) (net.Conn, error) {
	r.dials.Add(1)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	d := net.Dialer{KeepAlive: -1}
	d.SetMultipathTCP(false)
	c, err := d.DialContext(ctx, "tcp", t.addr.String())
	if err != nil || !t.url.TLS {
		return c, timedOut(err)
	}
	secured := tls.Client(c, r.tlsConfig(t, protocol))
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, timedOut(err)
	}
	return secured, nil
}

func (r *Runner) tlsConfig(t *target, protocol string) *tls.Config {
	config := &tls.Config{}
	if r.plan.TLS != nil {
		config = r.plan.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(t.url.Host) // was split before
	}
	config.NextProtos = []string{protocol}
	return config
}

// timedOut makes all the ways in which a dial can run out of time look the same.
func timedOut(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return context.DeadlineExceeded
	}
	return err
}

func (t *http1Transport) close() {
	if t.conn == nil {
		return
	}
	_ = t.conn.Close()
	t.conn = nil
	t.r.open.Add(-1)
}

func (t *http1Transport) exchange(deadline time.Time) (x exchanged) {
	t.scanner.Reset(t.target.expect)
	_ = t.conn.SetDeadline(deadline) // fails only on a closed connection, and then so does the write
	x.class = t.converse(&x.bytes)
	x.status = t.scanner.Status
	whole := x.class == result.OK || x.class == result.Refused || x.class == result.Status || x.class == result.WrongBody
	if !whole || t.scanner.Close || t.r.plan.NoKeepAlive {
		t.close()
	}
	return x
}

func (t *http1Transport) converse(received *int64) result.Class {
	if _, err := t.conn.Write(t.target.bytes); err != nil {
		return t.broken(err)
	}
	for {
		n, err := t.conn.Read(t.buffer)
		*received += int64(n)
		taken, done, malformed := t.scanner.Feed(t.buffer[:n])
		switch {
		case malformed != nil, done && taken < n:
			return result.Malformed
		case done:
			return t.target.classify(&t.scanner)
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, syscall.ECONNRESET) && t.scanner.EOF():
			return t.target.classify(&t.scanner)
		default:
			return t.broken(err)
		}
	}
}

// broken is the class of a request whose connection failed.
func (t *http1Transport) broken(err error) result.Class {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return result.Timeout
	case t.scanner.Begun():
		return result.Truncated
	}
	return result.Reset
}
