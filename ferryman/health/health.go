// Package health asks an upstream at intervals whether it is well. It does not decide what follows from
// the answer: it reports every result to a function.
//
//	c := health.New("10.0.0.7:80", "ferryman/1.0", readStatus, func(err error) { ... })
//	c.Start(5*time.Second, 2*time.Second)
//	defer c.Stop()
package health

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"sync"
	"time"
)

// maxHead bounds what is read of an answer, in bytes.
const maxHead = 8 << 10

// Checker sends GET /health to one upstream over a connection of its own, again and again, and never two at
// a time. New makes it; its fields must not change after Start.
type Checker struct {
	Addr      string // "host:port"
	UserAgent string

	// ReadStatus reads the head of an answer and returns its final status, or an error if it is malformed.
	// It sees the end of the stream after 8 KiB.
	ReadStatus func(io.Reader) (int, error)

	// Report gets every result, one after the other: nil for an upstream that answered under 500. It is
	// not called after Stop has returned, and must not call Stop.
	Report func(error)

	// Dial opens the connection. Nil means that of a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	ctx     context.Context // ends with Stop
	cancel  context.CancelFunc
	done    chan struct{} // closed by run when it ends; nil before Start
	changed chan struct{} // tells run about a new interval

	mu                sync.Mutex // guards what follows
	interval, timeout time.Duration
}

// New returns a checker that waits for Start.
func New(addr, userAgent string, readStatus func(io.Reader) (int, error), report func(error)) *Checker {
	c := &Checker{Addr: addr, UserAgent: userAgent, ReadStatus: readStatus, Report: report}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.changed = make(chan struct{}, 1)
	return c
}

// Start begins the checks, once: one each interval, each of which may take up to timeout. The first comes
// within one interval, at a moment that depends on Addr, so that many checkers do not check in step. Both
// must be positive, and timeout the shorter.
func (c *Checker) Start(interval, timeout time.Duration) {
	c.interval, c.timeout = interval, timeout
	c.done = make(chan struct{})
	go c.run()
}

// Configure changes interval and timeout of a checker that was started. A check that is under way, and the
// next one if the interval stays, are not touched; with another interval the next one comes within the old
// or the new interval, whichever ends first.
func (c *Checker) Configure(interval, timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timeout = timeout
	if c.interval != interval {
		c.interval = interval
		select {
		case c.changed <- struct{}{}:
		default: // run has not seen the last change yet, and will see this one with it
		}
	}
}

// Stop ends a check that is under way, without a report, and waits until nothing runs any more. It may be
// called more than once, and before Start, which must not follow then.
func (c *Checker) Stop() {
	c.cancel()
	if c.done != nil {
		<-c.done
	}
}

func (c *Checker) settings() (interval, timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.interval, c.timeout
}

func (c *Checker) run() {
	defer close(c.done)
	interval, _ := c.settings()
	due := time.Now().Add(c.phase(interval))
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.changed:
			// Spread anew, or else all checkers that are overdue by a shorter interval would start at once.
			interval, _ = c.settings()
			if next := time.Now().Add(c.phase(interval)); next.Before(due) {
				due = next
			}
		case start := <-timer.C:
			interval, timeout := c.settings()
			err := c.check(start.Add(timeout))
			if c.ctx.Err() != nil {
				return
			}
			c.Report(err)
			due = start.Add(interval)
		}
		timer.Reset(time.Until(due))
	}
}

// phase is this checker's own point in an interval.
func (c *Checker) phase(interval time.Duration) time.Duration {
	h := fnv.New64a()
	io.WriteString(h, c.Addr)
	return time.Duration(float64(interval) * float64(h.Sum64()>>11) / (1 << 53))
}

// check does one check, and returns by the deadline.
func (c *Checker) check(deadline time.Time) error {
	ctx, cancel := context.WithDeadline(c.ctx, deadline)
	defer cancel()
	dial := c.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, "tcp", c.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	_, err = fmt.Fprintf(conn, "GET /health HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nConnection: close\r\n\r\n",
		c.Addr, c.UserAgent)
	if err != nil {
		return err
	}
	status, err := c.ReadStatus(io.LimitReader(conn, maxHead))
	if err == nil && status >= 500 {
		return fmt.Errorf("answer has status %d", status)
	}
	return err
}
