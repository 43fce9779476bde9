package dial

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// ErrShortage is in the error of a dial that failed for want of something of the process's own. It tells nothing about
// the target.
var ErrShortage = errors.New("short of a resource of this host")

// Resources are what a process may be short of.
var Resources = [...]string{"descriptors", "memory", "ports"}

// shortageOf names what was missing when a dial failed, or is empty.
func shortageOf(err error) string {
	var op *net.OpError
	var dns *net.DNSError
	resource := netloop.Shortage(err)
	switch {
	case errors.As(err, &dns):
		// Package net keeps the text of what a query has met, and no more.
		for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
			if strings.Contains(dns.Err, e.Error()) {
				return "descriptors"
			}
		}
	case resource == "ports" && errors.As(err, &op) && noSource(op.Addr):
		return ""
	}
	return resource
}

// noSource reports whether this host has no address to reach another from: where there is no IPv6, that is the same error
// as a want of ports.
func noSource(to net.Addr) bool {
	tcp, ok := to.(*net.TCPAddr)
	if !ok {
		return false
	}
	c, err := net.DialUDP("udp", nil, (*net.UDPAddr)(tcp)) // sends nothing
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.EADDRNOTAVAIL)
}

// settled is for how long dials must not have failed for want of a resource before one that works ends a shortage:
// of a few descriptors that come and go, one line is enough.
const settled = time.Second

// shortages counts, and tells of the beginning and the end of each shortage.
type shortages struct {
	o     Options
	count [len(Resources)]atomic.Uint64
	any   atomic.Bool // there is a shortage

	mu   sync.Mutex                // guards last
	last [len(Resources)]time.Time // when a dial failed last; zero: there is no shortage
}

// tell takes note of a failed dial, and returns its error.
func (s *shortages) tell(err error) error {
	resource := shortageOf(err)
	for i, r := range Resources {
		if r != resource {
			continue
		}
		s.count[i].Add(1)
		s.mu.Lock()
		began := s.last[i].IsZero()
		s.last[i] = time.Now()
		s.any.Store(true)
		s.mu.Unlock()
		if began && s.o.ShortageBegun != nil {
			s.o.ShortageBegun(r, err)
		}
		return fmt.Errorf("%w: %w", ErrShortage, err)
	}
	return err
}

// worked takes note of a dial that was none of these.
func (s *shortages) worked() {
	if !s.any.Load() {
		return
	}
	var over []string
	s.mu.Lock()
	now, left := time.Now(), false
	for i, last := range s.last {
		switch {
		case last.IsZero():
		case now.Sub(last) < settled:
			left = true
		default:
			s.last[i] = time.Time{}
			over = append(over, Resources[i])
		}
	}
	s.any.Store(left)
	s.mu.Unlock()
	for _, r := range over {
		if s.o.ShortageOver != nil {
			s.o.ShortageOver(r)
		}
	}
}

// Shortages counts the dials that failed for want of a resource.
func (d *Dialer) Shortages(resource string) uint64 {
	for i, r := range Resources {
		if r == resource {
			return d.shortages.count[i].Load()
		}
	}
	return 0
}
