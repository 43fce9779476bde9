package echo

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// front stands before the data server: loops answer the short requests, and a connection with any other
// one is the data server's from then on.
type front struct {
	s     *Server
	l     *net.TCPListener
	raw   syscall.RawConn // l's
	fd    int             // l's, to tell its events
	loops []*loop
	next  int // the loop for the next connection

	running, moving sync.WaitGroup
	handed          chan net.Conn
	closed          chan struct{}
	stopOnce, once  sync.Once
}

// fronts are those of a server.
type fronts struct {
	mu  sync.Mutex
	all []*front
}

// newFront is l as the data server shall see it.
func (s *Server) newFront(l net.Listener) (net.Listener, error) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return listener{Listener: l, s: s}, nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	f := &front{s: s, l: tcp, raw: raw, handed: make(chan net.Conn), closed: make(chan struct{})}
	processors := runtime.GOMAXPROCS(0)
	for range (processors + 3) / 4 { // the rest is for who asks, and for the proxy between
		l, err := newLoop(f, processors > 1)
		if err != nil {
			f.closeLoops()
			return nil, os.NewSyscallError("epoll", err)
		}
		f.loops = append(f.loops, l)
	}
	if err = f.listen(); err != nil {
		f.closeLoops()
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	for _, l := range f.loops {
		f.running.Go(l.run)
	}
	s.fronts.mu.Lock()
	s.fronts.all = append(s.fronts.all, f)
	s.fronts.mu.Unlock()
	return f, nil
}

func (s *Server) stopFronts() {
	s.fronts.mu.Lock()
	all := s.fronts.all
	s.fronts.mu.Unlock()
	for _, f := range all {
		f.stop()
	}
}

func (f *front) closeLoops() {
	for _, l := range f.loops {
		l.close()
	}
}

// listen has the first loop watch the listener. Connections inherit that their answers leave at once.
func (f *front) listen() error {
	var err error
	return errors.Join(f.raw.Control(func(fd uintptr) {
		f.fd = int(fd)
		if err = unix.SetsockoptInt(f.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err == nil {
			err = f.loops[0].watch(f.fd, unix.EPOLLIN|unix.EPOLLET)
		}
	}), err)
}

// accept takes a connection from the kernel; only the first loop does.
func (f *front) accept() (fd int, err error) {
	closed := f.raw.Control(func(listener uintptr) {
		fd, _, err = unix.Accept4(int(listener), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	})
	if closed != nil {
		return -1, closed
	}
	return fd, err
}

// place gives a new connection to a loop.
func (f *front) place(fd int) {
	f.s.opened.Add(1)
	f.s.openNow.Add(1)
	f.loops[f.next].add(fd)
	f.next = (f.next + 1) % len(f.loops)
}

// drop closes a connection that is no loop's any more.
func (f *front) drop(fd int) {
	f.s.openNow.Add(-1)
	_ = unix.Close(fd)
}

// handOver gives a connection to the data server, with what was read and not answered, and what was answered
// and not sent; if that is its last, it is closed then.
func (f *front) handOver(fd int, unread, unsent []byte, last bool) {
	file := os.NewFile(uintptr(fd), "connection")
	tcp, err := net.FileConn(file)
	_ = file.Close() // FileConn has its own
	if err != nil {
		f.s.openNow.Add(-1)
		return
	}
	c := &conn{Conn: tcp, open: &f.s.openNow, unread: unread, unsent: unsent, last: last}
	f.moving.Go(func() {
		select {
		case f.handed <- c:
		case <-f.closed:
			_ = c.Close()
		}
	})
}

// stop ends the loops, and returns when the data server has the connections on which a request waits.
func (f *front) stop() {
	f.stopOnce.Do(func() {
		for _, l := range f.loops {
			l.stop()
		}
	})
	f.running.Wait()
	f.moving.Wait()
}

// Accept returns the next connection that the loops leave to the data server.
func (f *front) Accept() (net.Conn, error) {
	select {
	case c := <-f.handed:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the loops and the listener.
func (f *front) Close() error {
	f.once.Do(func() { close(f.closed) })
	f.stop()
	return f.l.Close()
}

// Addr is the listener's.
func (f *front) Addr() net.Addr { return f.l.Addr() }
