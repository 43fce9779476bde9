package health

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// maxHeads is how many bytes are read of an answer. ReadStatus has a limit of its own for a head; these are two of the
// largest, for a final head may have interim ones before it.
const maxHeads = 128 << 10

// Checker sends GET /health to one upstream, again and again, each time over a new connection and never
// twice at a time. New makes it. Its fields must not change after Start.
type Checker struct {
	Addr      string // "host:port"
	UserAgent string

	// ReadStatus reads the head of an answer, of which it gets 128 KiB at most, and returns the final status,
	// or an error if it is malformed.
	ReadStatus func(io.Reader) (int, error)

	// Report gets the results one by one, nil for an answer under 500. It must not call Stop.
	Report func(error)

	// Dial opens connections, within the deadline of ctx; nil means that a net.Dialer does.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	ctx     context.Context // ends with Stop
	cancel  context.CancelFunc
	done    chan struct{} // closed when run returns; nil before Start
	changed chan struct{} // wakes run for another interval
	times   atomic.Pointer[times]
}

type times struct{ interval, timeout time.Duration }

// New returns a checker that waits for Start.
func New(addr, userAgent string, readStatus func(io.Reader) (int, error), report func(error)) *Checker {
	c := &Checker{Addr: addr, UserAgent: userAgent, ReadStatus: readStatus, Report: report}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.changed = make(chan struct{}, 1)
	return c
}

// Start begins to check, once in the life of c. Both durations must be positive, and timeout the shorter.
// The first check comes within one interval, at a point that depends on Addr, so that many checkers that
// start together are spread over it.
func (c *Checker) Start(interval, timeout time.Duration) {
	c.times.Store(&times{interval, timeout})
	c.done = make(chan struct{})
	go c.run()
}

// Configure changes the durations after Start. It touches no check that is under way and, while interval
// stays the same, not the time of the next one. With another interval the next check comes within the old
// or the new one, whichever is over first.
func (c *Checker) Configure(interval, timeout time.Duration) {
	if c.times.Swap(&times{interval, timeout}).interval == interval {
		return
	}
	select {
	case c.changed <- struct{}{}:
	default: // run has yet to wake for an earlier change, and will see this one too
	}
}

// Stop ends a check that is under way, without a report, and returns when nothing runs any more. It may be
// called twice, and instead of Start.
func (c *Checker) Stop() {
	c.cancel()
	if c.done != nil {
		<-c.done
	}
}

func (c *Checker) run() {
	defer close(c.done)
	due := c.first()
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-c.changed:
			if first := c.first(); first.Before(due) { // spread anew: many may be overdue by a shorter interval
				due = first
			}
		case <-timer.C:
			began := time.Now()
			err := c.check(began.Add(c.times.Load().timeout))
			if c.ctx.Err() != nil {
				return
			}
			c.Report(err)
			due = began.Add(c.times.Load().interval)
		}
		timer.Reset(time.Until(due))
	}
}

// first is when to check in an interval that begins now.
func (c *Checker) first() time.Time {
	h := fnv.New64a()
	io.WriteString(h, c.Addr)
	// The high bits of FNV differ little between addresses that differ in the last byte.
	part := float64(h.Sum64()*0x9e3779b97f4a7c15>>11) / (1 << 53)
	return time.Now().Add(time.Duration(part * float64(c.times.Load().interval)))
}

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
	conn.SetDeadline(deadline)
	defer context.AfterFunc(c.ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })() // Stop
	const head = "GET /health HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nConnection: close\r\n\r\n"
	if _, err = fmt.Fprintf(conn, head, c.Addr, c.UserAgent); err != nil {
		return err
	}
	status, err := c.ReadStatus(io.LimitReader(conn, maxHeads))
	if err == nil && status >= 500 {
		return fmt.Errorf("answer has status %d", status)
	}
	return err
}
