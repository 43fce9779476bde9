package netloop

import (
	"net"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inetAddr is a TCP address without pointers.
type inetAddr struct {
	ip   [16]byte
	zone uint32
	port uint16
	v4   bool
}

func fromRaw(sa *unix.RawSockaddrAny) (a inetAddr) {
	switch sa.Addr.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		copy(a.ip[:], in.Addr[:])
		a.v4, a.port = true, in.Port
	case unix.AF_INET6:
		in := (*unix.RawSockaddrInet6)(unsafe.Pointer(sa))
		a.ip, a.zone, a.port = in.Addr, in.Scope_id, in.Port
	}
	p := (*[2]byte)(unsafe.Pointer(&a.port)) // in network order
	a.port = uint16(p[0])<<8 | uint16(p[1])
	return a
}

func (a *inetAddr) tcp() *net.TCPAddr {
	t := &net.TCPAddr{IP: a.ip[:], Port: int(a.port)}
	if a.v4 {
		t.IP = a.ip[:4]
	}
	if a.zone != 0 {
		t.Zone = strconv.Itoa(int(a.zone))
	}
	return t
}

func localAddr(fd int) *net.TCPAddr {
	sa, _ := unix.Getsockname(fd)
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return &net.TCPAddr{IP: sa.Addr[:], Port: sa.Port}
	case *unix.SockaddrInet6:
		a := inetAddr{ip: sa.Addr, port: uint16(sa.Port), zone: sa.ZoneId}
		return a.tcp()
	}
	return &net.TCPAddr{}
}

func (c *loopConn) RemoteAddr() net.Addr {
	if c.remote == nil {
		c.remote = c.peer.tcp()
	}
	return c.remote
}

func (c *loopConn) LocalAddr() net.Addr {
	if c.local == nil {
		c.local = &net.TCPAddr{}
		if c.fd >= 0 {
			c.local = localAddr(c.fd)
		}
	}
	return c.local
}
