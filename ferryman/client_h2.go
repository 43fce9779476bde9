package ferryman

import (
	"net"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

func (p *Proxy) serveH2(ex netloop.Executor, raw netloop.Conn, conn net.Conn, entry *client) {
	p.clients.remove(entry)
	conn.Close()
}

func (p *Proxy) handOver(c *clientH1) bool { return false }
