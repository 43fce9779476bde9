package redteam

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// upstream is what ferryman forwards to: a listener for each mood. It speaks just enough HTTP/1.1, over
// raw sockets, for it has to bear thousands of connections that ferryman opens.
type upstream struct {
	places map[string]*place
	faults *faults
	life   context.Context // ends with it
	end    func()
}

// place is one listener of an upstream.
type place struct {
	u        *upstream
	mood     mood
	ln       net.Listener
	requests atomic.Int64 // heads that have come whole, health checks aside
	aborts   atomic.Int64 // connections that ended before the answer

	mu    sync.Mutex // guards conns
	conns map[*uconn]struct{}
	over  sync.WaitGroup
}

// uconn is a connection that ferryman has opened.
type uconn struct {
	*net.TCPConn
	at   *place
	in   *bufio.Reader
	busy bool // with a request; the place's lock guards it
}

// question is a request's head, as far as moods care.
type question struct {
	method, target, nonce string
	length                int64 // -1: none
	chunked               bool
	want                  int // bytes of the answer that the client asks for
}

func newUpstream(f *faults, moods ...mood) (*upstream, error) {
	u := &upstream{places: make(map[string]*place), faults: f}
	u.life, u.end = context.WithCancel(context.Background())
	for _, m := range moods {
		lc := net.ListenConfig{}
		if m.small {
			lc.Control = smallBuffers
		}
		ln, err := lc.Listen(u.life, "tcp", "127.0.0.1:0")
		if err != nil {
			u.close()
			return nil, err
		}
		p := &place{u: u, mood: m, ln: ln, conns: make(map[*uconn]struct{})}
		u.places[m.name] = p
		p.over.Add(1)
		go p.accept()
	}
	return u, nil
}

// smallBuffers has the kernel hold little for a connection, on either side: a segment as large as loopback's would have
// it hold megabytes.
func smallBuffers(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = errors.Join(syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 16<<10),
			syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 1000))
	})
	return errors.Join(err, failed)
}

func (u *upstream) addr(mood string) string { return u.places[mood].ln.Addr().String() }

func (u *upstream) close() {
	u.end()
	for _, p := range u.places {
		p.ln.Close()
		p.resetAll()
		p.over.Wait()
	}
}

func (p *place) accept() {
	defer p.over.Done()
	for {
		nc, err := p.ln.Accept()
		if err != nil {
			return
		}
		c := &uconn{TCPConn: nc.(*net.TCPConn), at: p, in: bufio.NewReaderSize(nc, 4<<10)}
		p.mu.Lock()
		p.conns[c] = struct{}{}
		p.mu.Unlock()
		p.over.Add(1)
		go p.serve(c)
	}
}

func (p *place) serve(c *uconn) {
	defer p.over.Done()
	defer func() {
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
		c.Close()
	}()
	for {
		q, err := c.readHead()
		if err != nil {
			return
		}
		if q.target == "/health" {
			if c.answer(200, "", "") != nil {
				return
			}
			continue
		}
		p.requests.Add(1)
		p.plays(c, true)
		if !p.mood.play(c, q) {
			return
		}
		p.plays(c, false)
	}
}

// resetAll has the upstream fail: every connection ends with a reset.
func (p *place) resetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.SetLinger(0)
		c.Close()
	}
}

func (p *place) plays(c *uconn, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.busy = busy
}

// busy is how many connections have a request. Others are dials whose client has left, kept for the next one.
func (p *place) busy() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if c.busy {
			n++
		}
	}
	return n
}

// readHead reads a request's head, of any size, in little memory.
func (c *uconn) readHead() (q *question, err error) {
	q = &question{length: -1}
	for first := true; ; first = false {
		line, err := c.readLine()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			return q, nil
		}
		if first {
			parts := strings.SplitN(string(line), " ", 3)
			if len(parts) != 3 {
				return nil, errors.New("no request line")
			}
			q.method, q.target = parts[0], parts[1]
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch strings.ToLower(string(name)) {
		case "content-length":
			q.length, _ = strconv.ParseInt(string(value), 10, 64)
		case "transfer-encoding":
			q.chunked = true
		case "x-nonce":
			q.nonce = string(value)
		case "x-want":
			q.want, _ = strconv.Atoi(string(value))
		}
	}
}

// readLine returns the beginning of a line, without its end.
func (c *uconn) readLine() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.TrimRight(line, "\r\n"), err
	}
	kept := bytes.Clone(line[:200])
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = c.in.ReadSlice('\n')
	}
	return kept, err
}

// readBody hands the body to take, piece by piece.
func (c *uconn) readBody(q *question, take func([]byte)) error {
	if !q.chunked {
		return c.readBytes(max(0, q.length), take)
	}
	for {
		line, err := c.readLine()
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(line), 16, 64)
		if err != nil {
			return err
		}
		if err := c.readBytes(n, take); err != nil {
			return err
		}
		if line, err = c.readLine(); err != nil || len(line) > 0 {
			return errors.Join(err, errors.New("no end of a chunk"))
		}
		if n == 0 {
			return nil
		}
	}
}

func (c *uconn) readBytes(n int64, take func([]byte)) error {
	for n > 0 {
		if _, err := c.in.Peek(1); err != nil {
			return err
		}
		b, _ := c.in.Peek(int(min(n, int64(c.in.Buffered()))))
		if take != nil {
			take(b)
		}
		_, _ = c.in.Discard(len(b))
		n -= int64(len(b))
	}
	return nil
}

// answer sends a small response.
func (c *uconn) answer(status int, nonce, body string) error {
	text := "HTTP/1.1 " + strconv.Itoa(status) + " X\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
	if nonce != "" {
		text += "X-Nonce: " + nonce + "\r\n"
	}
	_, err := io.WriteString(c, text+"\r\n"+body)
	return err
}
