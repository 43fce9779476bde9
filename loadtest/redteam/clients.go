package redteam

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	clientsH1   = 60
	clientsH2   = 10
	streamsEach = 6
	// aborts is how many requests in a hundred are not waited for.
	aborts = 4
)

// errand is one request of a crossing test.
type errand struct {
	nonce  string
	upload int // bytes of its body; -1: none
	want   int // bytes of the answer
}

func (x *crossing) errand() errand {
	sizes := []int{0, 1, 50, 500, 3000, 20_000, 100_000}
	e := errand{nonce: strconv.FormatInt(100_000+x.nonces.Add(1), 10), upload: -1, want: sizes[rand.IntN(len(sizes))]}
	if rand.IntN(3) == 0 {
		e.upload = sizes[rand.IntN(len(sizes))]
	}
	return e
}

func (e errand) method() string {
	if e.upload < 0 {
		return "GET"
	}
	return "POST"
}

// raw is the request on the wire.
func (e errand) raw() string {
	head := fmt.Sprintf("%s /echo/%s HTTP/1.1\r\nHost: localhost\r\nX-Nonce: %s\r\nX-Want: %d\r\n", e.method(), e.nonce, e.nonce, e.want)
	body := pattern(e.nonce, max(0, e.upload))
	switch {
	case e.upload < 0:
		return head + "\r\n"
	case e.upload > 0 && rand.IntN(2) == 0:
		return fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", head, len(body), body)
	}
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

// check looks at an answer. It returns whether the connection is good for another.
func (x *crossing) check(e errand, resp *http.Response) bool {
	defer resp.Body.Close()
	nonce := resp.Header.Get("X-Nonce")
	if nonce == "" && resp.StatusCode >= 500 { // ferryman's own
		body, err := io.ReadAll(resp.Body)
		if err != nil || len(body) > 100 {
			x.r.faults.add("%s: a %d of %d bytes, %v", e.nonce, resp.StatusCode, len(body), err)
		}
		x.own.Add(1)
		return !resp.Close
	}
	m := &matcher{nonce: e.nonce}
	_, err := io.Copy(m, resp.Body)
	switch {
	case nonce != e.nonce || m.wrong || resp.StatusCode != 200 && resp.StatusCode != 401:
		x.r.faults.add("%s gets nonce %q, status %d, a body that is its own: %v", e.nonce, nonce, resp.StatusCode, !m.wrong)
		return false
	case err != nil:
		x.cut.Add(1)
		return false
	case m.n != e.want:
		x.r.faults.add("%s gets %d bytes instead of %d", e.nonce, m.n, e.want)
		return false
	}
	x.right.Add(1)
	return !resp.Close
}

// rest is what a client waits between two requests.
func (x *crossing) rest() bool {
	if x.busy.Load() {
		return x.ctx.Err() == nil
	}
	return pause(x.ctx, time.Duration(100+rand.IntN(300))*time.Millisecond)
}

// clientH1 asks on one connection after another, some requests pipelined.
func (x *crossing) clientH1() {
	for x.ctx.Err() == nil {
		c, err := x.r.dial("http/1.1", 0)
		if err != nil {
			if x.ctx.Err() == nil {
				x.r.faults.add("dial: %v", err)
			}
			return
		}
		for in := bufio.NewReader(c); x.askH1(c, in) && x.rest(); {
		}
		x.r.drop(c)
	}
}

func (x *crossing) askH1(c *conn, in *bufio.Reader) (goOn bool) {
	errands := []errand{x.errand()}
	for rand.IntN(4) == 0 && len(errands) < 5 {
		errands = append(errands, x.errand())
	}
	raw := ""
	for _, e := range errands {
		raw += e.raw()
	}
	if rand.IntN(100) < aborts {
		x.aborted.Add(1)
		_, _ = io.WriteString(c, raw[:rand.IntN(len(raw)+1)])
		pause(x.ctx, time.Duration(rand.IntN(4000))*time.Microsecond)
		if rand.IntN(2) == 0 {
			_ = c.tcp.SetLinger(0)
		}
		return false
	}
	written := make(chan struct{}) // answers come while requests are sent, and may fill what lies between
	go func() {
		defer close(written)
		if rand.IntN(8) == 0 {
			at := rand.IntN(len(raw))
			_, _ = io.WriteString(c, raw[:at])
			pause(x.ctx, time.Duration(rand.IntN(20))*time.Millisecond)
			raw = raw[at:]
		}
		_, _ = io.WriteString(c, raw)
	}()
	defer func() { <-written }()
	_ = c.SetReadDeadline(time.Now().Add(answerLimit))
	for _, e := range errands {
		resp, err := http.ReadResponse(in, &http.Request{Method: e.method()})
		if err != nil {
			x.cut.Add(1)
			c.tcp.Close()
			return false
		}
		if !x.check(e, resp) {
			c.tcp.Close()
			return false
		}
	}
	return true
}

// clientH2 has some streams at once on one connection after another. The standard library does the frames.
func (x *crossing) clientH2() {
	for x.ctx.Err() == nil {
		cc, tcp, err := x.dialH2()
		if err != nil {
			if x.ctx.Err() == nil {
				x.r.faults.add("HTTP/2: %v", err)
			}
			return
		}
		var streams sync.WaitGroup
		for range streamsEach {
			streams.Go(func() {
				for cc.Err() == nil && x.askH2(cc, tcp) && x.rest() {
				}
			})
		}
		streams.Wait()
		cc.Close()
		tcp.Close()
	}
}

func (x *crossing) dialH2() (cc *http.ClientConn, tcp *net.TCPConn, err error) {
	t := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", x.r.addr)
		if err == nil {
			tcp = c.(*net.TCPConn)
		}
		return c, err
	}
	scheme := "http"
	if x.r.secure {
		scheme = "https"
		t.Protocols.SetHTTP2(true)
	} else {
		t.Protocols.SetUnencryptedHTTP2(true)
	}
	cc, err = t.NewClientConn(x.ctx, scheme, x.r.addr)
	return cc, tcp, err
}

func (x *crossing) askH2(cc *http.ClientConn, tcp *net.TCPConn) (goOn bool) {
	e := x.errand()
	ctx, cancel := context.WithTimeout(x.ctx, answerLimit)
	defer cancel()
	abort := rand.IntN(100) < aborts
	if abort {
		x.aborted.Add(1)
		if rand.IntN(20) == 0 { // the whole connection
			_ = tcp.SetLinger(0)
			defer time.AfterFunc(time.Duration(rand.IntN(4000))*time.Microsecond, func() { tcp.Close() }).Stop()
		} else {
			defer time.AfterFunc(time.Duration(rand.IntN(4000))*time.Microsecond, cancel).Stop()
		}
	}
	var body io.Reader
	if e.upload >= 0 {
		body = strings.NewReader(pattern(e.nonce, e.upload))
		if rand.IntN(2) == 0 {
			body = struct{ io.Reader }{body} // of a length that is not told
		}
	}
	req, err := http.NewRequestWithContext(ctx, e.method(), "http://localhost/echo/"+e.nonce, body)
	if err != nil {
		return false
	}
	if x.r.secure {
		req.URL.Scheme = "https"
	}
	req.Header.Set("X-Nonce", e.nonce)
	req.Header.Set("X-Want", strconv.Itoa(e.want))
	resp, err := cc.RoundTrip(req)
	if err != nil {
		if !abort {
			x.cut.Add(1)
		}
		return cc.Err() == nil
	}
	x.check(e, resp)
	return true
}
