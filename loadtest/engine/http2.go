package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/Bunty9/ferryman/loadtest/result"
	"github.com/Bunty9/ferryman/loadtest/wire"
)

// http2Transport is an HTTP/2 connection that its workers share, a stream each. The standard
// library does the frames, so it allocates and costs several times what HTTP/1.1 does.
type http2Transport struct {
	r      *Runner
	target *target
	dialer *http.Transport
	fields [][2]string
	host   string

	mu   sync.Mutex // guards conn; held while dialling, so that only one of the workers does
	conn *http.ClientConn
}

func newHTTP2Transport(r *Runner, t *target) *http2Transport {
	h := &http2Transport{r: r, target: t}
	h.fields, h.host, _ = t.request.Fields() // they were read before
	if h.host == "" {
		h.host = t.url.Name
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	h.dialer = &http.Transport{
		Protocols: protocols, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return h.dial(ctx) },
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return h.dial(ctx)
		},
	}
	return h
}

func (h *http2Transport) dial(ctx context.Context) (net.Conn, error) {
	deadline, _ := ctx.Deadline() // open always sets one
	return h.r.dial(h.target, deadline, "h2")
}

func (h *http2Transport) current() *http.ClientConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn != nil && h.conn.Err() != nil {
		h.dropLocked()
	}
	return h.conn
}

func (h *http2Transport) connected() bool { return h.current() != nil }

func (h *http2Transport) open(deadline time.Time) error {
	if h.current() != nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn != nil {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	scheme := "http"
	if h.target.url.TLS {
		scheme = "https"
	}
	c, err := h.dialer.NewClientConn(ctx, scheme, h.target.url.Host)
	if err != nil {
		return timedOut(err)
	}
	h.conn = c
	h.r.open.Add(1)
	return nil
}

func (h *http2Transport) dropLocked() {
	_ = h.conn.Close()
	h.conn = nil
	h.r.open.Add(-1)
}

func (h *http2Transport) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn != nil {
		h.dropLocked()
	}
}

func (h *http2Transport) exchange(deadline time.Time) exchanged {
	conn := h.current()
	if conn == nil { // another stream found it dead a moment ago
		return exchanged{class: result.Reset}
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	response, err := conn.RoundTrip(h.newRequest(ctx))
	if err != nil {
		return exchanged{class: failed(err, result.Reset)}
	}
	defer response.Body.Close()
	x := exchanged{status: response.StatusCode}
	body := bodyCheck{expect: h.target.expect}
	if x.bytes, err = io.Copy(&body, response.Body); err != nil {
		x.class = failed(err, result.Truncated)
		return x
	}
	x.class = h.target.judge(x.status, response.Header.Get("Retry-After") != "", body.beginning, body.right())
	return x
}

func (h *http2Transport) newRequest(ctx context.Context) *http.Request {
	t := h.target
	scheme := "http"
	if t.url.TLS {
		scheme = "https"
	}
	request := &http.Request{
		Method: t.request.Verb(), Host: h.host, Header: http.Header{}, ContentLength: int64(len(t.request.Body)),
		// Opaque keeps the target byte for byte.
		URL: &url.URL{Scheme: scheme, Host: t.url.Host, Opaque: "//" + h.host + t.url.Target},
	}
	if len(t.request.Body) > 0 {
		request.Body = io.NopCloser(bytes.NewReader(t.request.Body))
	}
	for _, f := range h.fields {
		request.Header[http.CanonicalHeaderKey(f[0])] = append(request.Header[http.CanonicalHeaderKey(f[0])], f[1])
	}
	if request.Header.Get("User-Agent") == "" {
		request.Header["User-Agent"] = nil // none, as over HTTP/1.1
	}
	return request.WithContext(ctx)
}

// failed is the class of an error; other is that of one that is no timeout.
func failed(err error, other result.Class) result.Class {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return result.Timeout
	}
	return other
}

// bodyCheck compares a body as it passes by.
type bodyCheck struct {
	expect    wire.Expectation
	length    int
	differs   bool
	beginning []byte
}

func (b *bodyCheck) Write(p []byte) (int, error) {
	if room := wire.SnippetSize - len(b.beginning); room > 0 {
		b.beginning = append(b.beginning, p[:min(room, len(p))]...)
	}
	if want := b.expect.Body; b.expect.Exact && !b.differs {
		b.differs = b.length+len(p) > len(want) || !bytes.Equal(want[b.length:b.length+len(p)], p)
	}
	b.length += len(p)
	return len(p), nil
}

func (b *bodyCheck) right() bool {
	return !b.expect.Exact || b.expect.NoBody || (!b.differs && b.length == len(b.expect.Body))
}
