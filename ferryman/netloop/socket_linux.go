package netloop

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of the hot path. They never block, so the scheduler need not know of them: of one that
// it knows of and that takes long, its monitor makes another thread's work.

const canPeek = true

func recv(fd int, b []byte, flags uintptr) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags|unix.MSG_DONTWAIT, 0, 0)
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

func send(fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		if e != unix.EINTR {
			return int(n), e
		}
	}
}

// quiet reports whether a socket has nothing to read: no byte, no end of stream, no error. It asks
// poll and not a peek, for a peek takes a reset away from the read that would have met it.
func quiet(fd int) bool { return polled(fd, unix.POLLIN) == 0 }

// gone reports whether the peer of a socket has closed its sending side or reset it, whatever is
// still unread, and whether there is an error, such as that of a reset.
func gone(fd int) (gone, broken bool) {
	is := polled(fd, unix.POLLRDHUP)
	return is != 0, is&unix.POLLERR != 0
}

// polled returns which of the events are there; an error or a hang-up is one in any case.
func polled(fd int, events int16) int16 {
	p := unix.PollFd{Fd: int32(fd), Events: events}
	var now unix.Timespec
	n, _, e := syscall.RawSyscall6(unix.SYS_PPOLL,
		uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	if e != 0 || n != 1 {
		return 0
	}
	return p.Revents
}

// unread is how many bytes a socket has that were not read. An end of stream is none.
func unread(fd int) int {
	n, _ := unix.IoctlGetInt(fd, unix.SIOCINQ)
	return n
}

func accept(fd int, from *unix.RawSockaddrAny) (int, syscall.Errno) {
	size := uint32(unix.SizeofSockaddrAny)
	n, _, e := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(from)),
		uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	return int(n), e
}

// closeSocket closes a socket, which waits for nothing unless the socket lingers for a time.
func closeSocket(fd int) error {
	if _, _, e := syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0); e != 0 {
		return e
	}
	return nil
}

// maxUnsent is how many bytes for a slow reader the kernel takes in beyond those that are on their way.
const maxUnsent = 128 << 10

// boundUnsent keeps a reader that does not read from holding megabytes of the kernel's memory: without it
// the send buffer grows to the largest size there is (tcp(7), tcp_wmem).
func boundUnsent(fd int) { unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent) }

// sockName sets at to the address of a socket, or leaves it alone.
func sockName(fd int, at *unix.RawSockaddrAny) {
	size := uint32(unix.SizeofSockaddrAny)
	syscall.RawSyscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(at)), uintptr(unsafe.Pointer(&size)))
}

// epollWait waits for events, for so many milliseconds at most, and returns their number. It keeps the
// processor from the scheduler meanwhile; a signal, such as that of a preemption, ends it (signal(7)).
func epollWait(fd int, events []unix.EpollEvent, limit uintptr) int {
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd),
		uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), limit, 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}
