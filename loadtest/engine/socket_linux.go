package engine

import (
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receive and send are raw system calls: the sockets never block, so the scheduler need not know.

// receiver receives with the kernel's own time of arrival, so that a loop that looks late does not
// measure its own lateness.
type receiver struct {
	message unix.Msghdr
	vector  unix.Iovec
	control [64]byte
}

// receive reads into p. stamp is the wall time at which the last byte arrived, in nanoseconds since
// 1970; 0 where the kernel does not say.
func (r *receiver) receive(fd int, p []byte) (n int, stamp int64, errno syscall.Errno) {
	r.vector.Base = &p[0]
	r.vector.SetLen(len(p))
	r.message.Iov, r.message.Iovlen = &r.vector, 1
	r.message.Control = &r.control[0]
	r.message.SetControllen(len(r.control))
	got, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.message)), 0)
	if errno != 0 {
		return 0, 0, errno
	}
	return int(got), r.stamp(), 0
}

// stamp reads the one control message that was asked for.
func (r *receiver) stamp() int64 {
	const want = unix.SizeofCmsghdr + int(unsafe.Sizeof(unix.Timespec{}))
	if int(r.message.Controllen) < want {
		return 0
	}
	head := (*unix.Cmsghdr)(unsafe.Pointer(&r.control[0]))
	if head.Level != unix.SOL_SOCKET || head.Type != unix.SO_TIMESTAMPNS {
		return 0
	}
	return (*unix.Timespec)(unsafe.Pointer(&r.control[unix.SizeofCmsghdr])).Nano()
}

func send(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

// epollWait returns the number of events. The scheduler is told of it only if it may sleep.
func epollWait(epoll int, events []unix.EpollEvent, milliseconds int) int {
	call := unix.Syscall6
	if milliseconds == 0 {
		call = unix.RawSyscall6
	}
	n, _, errno := call(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(milliseconds), 0, 0)
	if errno != 0 {
		return 0 // EINTR: the next turn waits again
	}
	return int(n)
}

// dial starts a connection. connected is true where it was made at once.
func dial(addr netip.AddrPort) (fd int, connected bool, err error) {
	family := unix.AF_INET6
	if addr.Addr().Is4() {
		family = unix.AF_INET
	}
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, false, err
	}
	if err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err == nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) // without it the loop's own clock has to do
		err = unix.Connect(fd, sockaddr(addr))
	}
	switch err {
	case nil:
		return fd, true, nil
	case unix.EINPROGRESS:
		return fd, false, nil
	}
	_ = unix.Close(fd)
	return -1, false, err
}

func sockaddr(addr netip.AddrPort) unix.Sockaddr {
	if addr.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
}

// connectError is how a connection attempt ended.
func connectError(fd int) error {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return err
	}
	if n != 0 {
		return syscall.Errno(n)
	}
	return nil
}
