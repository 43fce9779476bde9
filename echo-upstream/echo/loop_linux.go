package echo

import (
	"bytes"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// shortWait is how long a loop may wait in the kernel without telling the scheduler, and shortBefore how
	// many waits in a row must have been shorter for it to do so.
	shortWait, shortBefore = time.Millisecond, 2
	// retryAccept is how soon a loop that could not accept, for want of descriptors, tries again.
	retryAccept = 100 * time.Millisecond
	largestRead = 64 << 10
	forever     = -time.Millisecond
)

// loop answers the short requests of its connections, on one thread and without a goroutine for each:
// two system calls a request. It keeps nothing of a connection but its descriptor, for a request that does
// not come whole is not short. All methods but add and stop are for its goroutine.
type loop struct {
	front  *front
	epoll  int
	wake   int // an eventfd; what wakes it is that the loop is to end
	events [256]unix.EpollEvent
	buffer [largestRead]byte
	out    []byte

	keeps  bool // the processor while it waits: others have one
	last   time.Time
	short  int  // waits in a row that were short
	hungry bool // connections could not be accepted

	keeping, ending []byte // answers: of them the second ends the connection
	dated           int64  // the second that they name

	mu    sync.Mutex
	open  map[int]struct{}
	ended bool
}

func newLoop(f *front, keeps bool) (*loop, error) {
	l := &loop{front: f, epoll: -1, wake: -1, keeps: keeps, open: map[int]struct{}{}}
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
			err = l.watch(l.wake, unix.EPOLLIN)
		}
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *loop) close() {
	for _, fd := range []int{l.epoll, l.wake} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

func (l *loop) watch(fd int, events uint32) error {
	return unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// add gives the loop a connection, from any goroutine. One that it cannot have is the data server's.
func (l *loop) add(fd int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.watch(fd, unix.EPOLLIN|unix.EPOLLPRI|unix.EPOLLRDHUP|unix.EPOLLET) != nil {
		l.front.handOver(fd, nil, nil, false)
		return
	}
	l.open[fd] = struct{}{}
}

// stop has run return, from any goroutine.
func (l *loop) stop() {
	one := [8]byte{1}
	_, _ = unix.Write(l.wake, one[:]) // full: it has been woken already
}

func (l *loop) run() {
	for {
		events := l.events[:l.wait()]
		l.date()
		if l.hungry {
			l.accept()
		}
		for _, e := range events {
			switch int(e.Fd) {
			case l.wake:
				l.end()
				return
			case l.front.fd:
				l.accept()
			default:
				l.serve(int(e.Fd), e.Events)
			}
		}
	}
}

// wait returns how many events there are. While they follow closely it waits without telling the
// scheduler, which would take the processor away and give it back.
func (l *loop) wait() (n int) {
	if l.keeps && l.short >= shortBefore {
		n = l.poll(unix.RawSyscall6, shortWait)
	}
	for n == 0 {
		limit := forever
		if l.hungry {
			limit = retryAccept
		}
		if n = l.poll(unix.Syscall6, limit); l.hungry {
			break
		}
	}
	now := time.Now()
	if l.short++; now.Sub(l.last) >= shortWait {
		l.short = 0
	}
	l.last = now
	return n
}

// poll waits for events; none came if a signal did.
func (l *loop) poll(call func(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err syscall.Errno), limit time.Duration) int {
	n, _, errno := call(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events)), uintptr(len(l.events)),
		uintptr(limit.Milliseconds()), 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// date renews the answers, for they name the second.
func (l *loop) date() {
	if now := l.last.Unix(); now != l.dated {
		l.dated = now
		l.keeping, l.ending = l.front.s.fixedAnswer(false), l.front.s.fixedAnswer(true)
	}
}

func (l *loop) accept() {
	for {
		switch fd, err := l.front.accept(); err {
		case nil:
			l.front.place(fd)
		case unix.ECONNABORTED, unix.EINTR:
		default:
			l.hungry = err != unix.EAGAIN
			return
		}
	}
}

// serve reads what has come on a connection and answers what is short of it. A read that leaves room in
// the buffer has emptied the socket, unless the peer has closed: then the last one says so.
func (l *loop) serve(fd int, events uint32) {
	for {
		n, errno := call(unix.SYS_RECVFROM, fd, l.buffer[:], unix.MSG_DONTWAIT)
		switch {
		case errno == unix.EAGAIN:
			return
		case errno != 0 || n == 0:
			l.forget(fd)
			l.front.drop(fd)
			return
		case !l.answer(fd, l.buffer[:n]),
			n < len(l.buffer) && events&(unix.EPOLLPRI|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) == 0:
			return
		}
	}
}

// answer answers the requests at the start of in that are short, and reports whether the connection is
// still the loop's.
func (l *loop) answer(fd int, in []byte) bool {
	s, out, last, answered := l.front.s, l.out[:0], false, uint64(0)
	for len(in) > 0 && !last && s.injected.Load() == nil {
		n, closes := short(in)
		if n == 0 {
			break
		}
		in, last = in[n:], closes
		if last {
			out = append(out, l.ending...)
		} else {
			out = append(out, l.keeping...)
		}
		answered++
	}
	l.out = out
	s.answers[echoEndpoint][200].Add(answered)
	unsent, errno := send(fd, out)
	switch {
	case errno != 0 && errno != unix.EAGAIN, last && len(unsent) == 0:
		l.forget(fd)
		l.front.drop(fd)
	case last || len(in) > 0 || len(unsent) > 0:
		l.forget(fd)
		l.front.handOver(fd, bytes.Clone(in), bytes.Clone(unsent), last)
	default:
		return true
	}
	return false
}

// forget takes a connection out of the loop.
func (l *loop) forget(fd int) {
	_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, fd, nil) // it is in the set
	l.mu.Lock()
	delete(l.open, fd)
	l.mu.Unlock()
}

// end leaves connections on which a request waits to the server, and closes the others.
func (l *loop) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for fd := range l.open {
		if n, errno := call(unix.SYS_RECVFROM, fd, l.buffer[:], unix.MSG_DONTWAIT); errno == 0 && n > 0 {
			l.front.handOver(fd, bytes.Clone(l.buffer[:n]), nil, false)
		} else {
			l.front.drop(fd)
		}
	}
	l.close()
}

func send(fd int, b []byte) (unsent []byte, errno syscall.Errno) {
	for len(b) > 0 {
		n, errno := call(unix.SYS_SENDTO, fd, b, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if errno != 0 {
			return b, errno
		}
		b = b[n:]
	}
	return nil, 0
}

// call receives or sends. Neither blocks, so the scheduler need not know.
func call(trap uintptr, fd int, b []byte, flags uintptr) (int, syscall.Errno) {
	for {
		n, _, errno := unix.RawSyscall6(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}
