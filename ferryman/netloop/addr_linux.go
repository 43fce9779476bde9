package netloop

import (
	"net"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fromRaw translates a socket's address, the zero value if it is not one of TCP.
func fromRaw(sa *unix.RawSockaddrAny) netip.AddrPort {
	switch sa.Addr.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), hostOrder(in.Port))
	case unix.AF_INET6:
		in := (*unix.RawSockaddrInet6)(unsafe.Pointer(sa))
		ip := netip.AddrFrom16(in.Addr).Unmap()
		if in.Scope_id != 0 {
			ip = ip.WithZone(strconv.Itoa(int(in.Scope_id)))
		}
		return netip.AddrPortFrom(ip, hostOrder(in.Port))
	}
	return netip.AddrPort{}
}

// sockaddr translates an address for a connect. Its zone, if any, is the number of an interface.
func sockaddr(a netip.AddrPort) (family int, to unix.Sockaddr) {
	if ip := a.Addr(); ip.Is6() {
		zone, _ := strconv.ParseUint(ip.Zone(), 10, 32)
		return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), ZoneId: uint32(zone), Addr: ip.As16()}
	}
	return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}

func hostOrder(port uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&port))
	return uint16(b[0])<<8 | uint16(b[1])
}

func (c *loopConn) RemoteAddr() net.Addr {
	if c.remote == nil {
		c.remote = net.TCPAddrFromAddrPort(c.peer)
	}
	return c.remote
}

func (c *loopConn) LocalAddr() net.Addr {
	if c.local == nil {
		var sa unix.RawSockaddrAny
		if c.fd >= 0 {
			sockName(c.fd, &sa)
		}
		c.local = net.TCPAddrFromAddrPort(fromRaw(&sa))
	}
	return c.local
}
