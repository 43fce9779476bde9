package conformance

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// The raw HTTP/2 client. Frames and header blocks are written as a case says, sound or not; a reader
// in the background notes what comes for each stream. It answers SETTINGS and PING, and opens
// windows as it reads, unless the case keeps them to itself.

var h2TLS = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}

// forEachH2Mode runs a body over TLS with ALPN, and with prior knowledge, over either engine.
func forEachH2Mode(t *testing.T, body func(t *testing.T, m mode)) {
	t.Helper()
	forEachMode(t, body)
}

type h2options struct {
	settings []http2.Setting
	manual   bool // no window is opened and no PING answered but by the case
	rcvbuf   int
}

type h2client struct {
	*client
	r  *rig
	o  h2options
	fr *http2.Framer
	wm sync.Mutex // guards writing, the encoder included
	eb bytes.Buffer
	en *hpack.Encoder
	de *hpack.Decoder
	id uint32 // the next stream

	greeted bool // the preface was sent: frames are answered

	mu      sync.Mutex // guards what follows
	change  chan struct{}
	streams map[uint32]*h2stream
	goaways []goaway
	got     map[http2.SettingID]uint32
	acks    int
	pongs   int
	ended   error // why reading ended

	granted, sentData int64
}

type goaway struct {
	last uint32
	code http2.ErrCode
	at   time.Time
}

// h2stream is what came for one stream.
type h2stream struct {
	heads []h2head // 1xx, final, trailers
	data  []byte   // the first megabyte
	n     int64
	log   []string // as in "HEADERS", "DATA 5 END", "RST NO_ERROR"
	end   bool
	reset *http2.ErrCode

	endAt, resetAt time.Time

	granted, sent int64 // windows for uploads
}

type h2head struct {
	status string
	fields [][2]string
	end    bool
}

func (h h2head) values(name string) (v []string) {
	for _, f := range h.fields {
		if f[0] == name {
			v = append(v, f[1])
		}
	}
	return v
}

func (h h2head) get(name string) string {
	if v := h.values(name); len(v) > 0 {
		return v[0]
	}
	return ""
}

// final is the head that is no 1xx.
func (s h2stream) final() h2head {
	for _, h := range s.heads {
		if h.status != "" && h.status[0] != '1' {
			return h
		}
	}
	return h2head{}
}

func (r *rig) dialH2(t testing.TB, options ...h2options) *h2client {
	t.Helper()
	h := r.dialRawH2(t, options...)
	h.preface()
	return h
}

// dialRawH2 connects and sends nothing.
func (r *rig) dialRawH2(t testing.TB, options ...h2options) *h2client {
	t.Helper()
	var o h2options
	if len(options) > 0 {
		o = options[0]
	}
	c, err := r.tryDial(h2TLS, o.rcvbuf)
	require.NoError(t, err)
	c.t = t
	h := &h2client{client: c, r: r, o: o, id: 1, change: make(chan struct{}), streams: map[uint32]*h2stream{},
		got: map[http2.SettingID]uint32{}}
	h.fr = http2.NewFramer(c.conn, readerFunc(c.read))
	h.fr.AllowIllegalWrites = true
	h.fr.AllowIllegalReads = true
	h.en = hpack.NewEncoder(&h.eb)
	h.de = hpack.NewDecoder(4096, nil)
	h.de.SetMaxStringLength(1 << 20)
	return h
}

// preface sends the client's preface and starts reading.
func (h *h2client) preface() {
	h.greeted = true
	h.send(http2.ClientPreface)
	h.write(func() error { return h.fr.WriteSettings(h.o.settings...) })
	go h.read()
}

// write keeps errors, as send does: a proxy that refuses may stop reading.
func (h *h2client) write(f func() error) {
	h.wm.Lock()
	defer h.wm.Unlock()
	_ = h.conn.SetWriteDeadline(time.Now().Add(2 * patience))
	if err := f(); err != nil && h.writeErr == nil {
		h.writeErr = err
	}
}

// block encodes a header block; fields alternate names and values.
func (h *h2client) block(fields ...string) []byte {
	h.eb.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = h.en.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(h.eb.Bytes())
}

// headers sends a header block on a stream, in as many frames as it takes.
func (h *h2client) headers(id uint32, end bool, fields ...string) {
	h.write(func() error {
		b := h.block(fields...)
		first, rest := b[:min(len(b), 16384)], b[min(len(b), 16384):]
		err := h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndStream: end, EndHeaders: len(rest) == 0})
		for len(rest) > 0 && err == nil {
			n := min(len(rest), 16384)
			err = h.fr.WriteContinuation(id, n == len(rest), rest[:n])
			rest = rest[n:]
		}
		return err
	})
}

func (h *h2client) data(id uint32, end bool, b string) {
	h.write(func() error { return h.fr.WriteData(id, end, []byte(b)) })
}

func (h *h2client) rstStream(id uint32, code http2.ErrCode) {
	h.write(func() error { return h.fr.WriteRSTStream(id, code) })
}

// pseudo are the four pseudo-fields of an ordinary request.
func pseudo(method, path string) []string {
	return []string{":method", method, ":scheme", "https", ":authority", "a", ":path", path}
}

// ask opens the next stream with an ordinary head.
func (h *h2client) ask(method, path string, end bool, fields ...string) uint32 {
	return h.open(end, append(pseudo(method, path), fields...)...)
}

// open opens the next stream with exactly these fields.
func (h *h2client) open(end bool, fields ...string) uint32 {
	id := h.id
	h.id += 2
	h.headers(id, end, fields...)
	return id
}

func (h *h2client) stream(id uint32) *h2stream {
	s := h.streams[id]
	if s == nil {
		s = &h2stream{}
		h.streams[id] = s
	}
	return s
}

// read notes frames until the connection ends.
func (h *h2client) read() {
	for {
		_ = h.conn.SetReadDeadline(time.Now().Add(4 * patience))
		f, err := h.fr.ReadFrame()
		if err != nil {
			h.note(func() { h.ended = err })
			return
		}
		h.take(f)
	}
}

func (h *h2client) note(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.change)
	h.change = make(chan struct{})
}

func (h *h2client) take(f http2.Frame) {
	id := f.Header().StreamID
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() && h.greeted {
			h.write(h.fr.WriteSettingsAck)
		}
		h.note(func() {
			if f.IsAck() {
				h.acks++
			}
			_ = f.ForeachSetting(func(s http2.Setting) error { h.got[s.ID] = s.Val; return nil })
		})
	case *http2.PingFrame:
		if f.IsAck() {
			h.note(func() { h.pongs++ })
		} else if !h.o.manual {
			h.write(func() error { return h.fr.WritePing(true, f.Data) })
		}
	case *http2.GoAwayFrame:
		h.note(func() { h.goaways = append(h.goaways, goaway{f.LastStreamID, f.ErrCode, time.Now()}) })
	case *http2.RSTStreamFrame:
		h.note(func() {
			s := h.stream(id)
			if s.reset == nil {
				s.reset, s.resetAt = &f.ErrCode, time.Now()
			}
			s.log = append(s.log, "RST "+f.ErrCode.String())
		})
	case *http2.WindowUpdateFrame:
		h.note(func() {
			if id == 0 {
				h.granted += int64(f.Increment)
			} else {
				h.stream(id).granted += int64(f.Increment)
			}
		})
	case *http2.HeadersFrame:
		h.takeHead(id, f)
	case *http2.DataFrame:
		n := int64(len(f.Data()))
		h.note(func() {
			s := h.stream(id)
			s.data = append(s.data, f.Data()[:min(len(f.Data()), max(0, keepBody-len(s.data)))]...)
			s.n += n
			if f.StreamEnded() {
				s.end, s.endAt = true, time.Now()
			}
			s.log = append(s.log, "DATA"+map[bool]string{true: " END"}[f.StreamEnded()])
		})
		if n > 0 && !h.o.manual {
			h.grant(0, uint32(n))
			if !f.StreamEnded() {
				h.grant(id, uint32(n))
			}
		}
	}
}

func (h *h2client) grant(id, n uint32) {
	h.write(func() error { return h.fr.WriteWindowUpdate(id, n) })
}

// takeHead reads the CONTINUATION frames, too, which must follow at once.
func (h *h2client) takeHead(id uint32, f *http2.HeadersFrame) {
	block, done := bytes.Clone(f.HeaderBlockFragment()), f.HeadersEnded()
	end := f.StreamEnded()
	for !done {
		next, err := h.fr.ReadFrame()
		c, ok := next.(*http2.ContinuationFrame)
		if err != nil || !ok || c.StreamID != id {
			h.note(func() { h.ended = fmt.Errorf("no CONTINUATION: %v %v", next, err) })
			return
		}
		block, done = append(block, c.HeaderBlockFragment()...), c.HeadersEnded()
	}
	fields, err := h.de.DecodeFull(block)
	h.note(func() {
		s := h.stream(id)
		head := h2head{end: end}
		for _, f := range fields {
			if f.Name == ":status" {
				head.status = f.Value
			} else {
				head.fields = append(head.fields, [2]string{f.Name, f.Value})
			}
		}
		if err != nil {
			h.ended = err
		}
		s.heads = append(s.heads, head)
		s.end = s.end || end
		s.log = append(s.log, "HEADERS"+map[bool]string{true: " END"}[end])
	})
}

// until waits for a condition on what was noted.
func (h *h2client) until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	require.True(t, h.within(patience, cond), "not in time: %s; %s", what, h)
}

func (h *h2client) within(d time.Duration, cond func() bool) bool {
	for late := time.After(d); ; {
		h.mu.Lock()
		ok, change := cond(), h.change
		h.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-change:
		case <-late:
			return false
		}
	}
}

func (h *h2client) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "goaways %v ended %v", h.goaways, h.ended)
	for id, s := range h.streams {
		fmt.Fprintf(&b, " [%d %v %.300v]", id, s.log, s.heads)
	}
	return b.String()
}

// answer waits for the end of a stream, whatever it is.
func (h *h2client) answer(t testing.TB, id uint32) h2stream {
	t.Helper()
	var s h2stream
	h.until(t, fmt.Sprintf("end of stream %d", id), func() bool {
		st := h.stream(id)
		s = *st
		return st.end || st.reset != nil || h.ended != nil
	})
	if s.end {
		h.r.finals.Add(1)
	}
	return s
}

// want waits for a whole response and insists on its status.
func (h *h2client) want(t testing.TB, id uint32, status int) h2stream {
	t.Helper()
	s := h.answer(t, id)
	require.True(t, s.end, "stream %d must end properly: %v", id, s.log)
	require.Equal(t, fmt.Sprint(status), s.final().status, "%v %q", s.final(), s.data)
	for _, head := range s.heads {
		soundHead(t, head)
	}
	if s.final().get("x-u") == "" && status >= 400 {
		ownH2(t, s)
	}
	return s
}

// serve sends a GET and returns what the client got and what the upstream saw of it.
func (h *h2client) serve(t testing.TB, u *upstream, method, path string, fields ...string) (h2stream, *message) {
	t.Helper()
	n := nonce()
	s := h.want(t, h.ask(method, path, true, append(fields, "x-nonce", n)...), 200)
	return s, u.withNonce(t, n)
}

// malformed is MAL: the stream is reset or gets a 400, no upstream has a whole request of it, and the
// connection goes on.
func (h *h2client) malformed(t testing.TB, id uint32) {
	t.Helper()
	s := h.answer(t, id)
	switch {
	case s.reset != nil && !s.end:
		require.Equal(t, http2.ErrCodeProtocol, *s.reset)
	default:
		require.Equal(t, "400", s.final().status, "%s", h)
	}
	h.alive(t)
}

// alive insists that the connection still serves.
func (h *h2client) alive(t testing.TB) {
	t.Helper()
	h.want(t, h.ask("GET", "/alive", true), 200)
}

// isReset waits for a reset of the stream without an end before it.
func (h *h2client) isReset(t testing.TB, id uint32, codes ...http2.ErrCode) h2stream {
	t.Helper()
	s := h.answer(t, id)
	require.NotNil(t, s.reset, "stream %d must be reset: %s", id, h)
	require.False(t, s.end, "a reset stream must not look whole")
	if len(codes) > 0 {
		require.Contains(t, codes, *s.reset)
	}
	return s
}

// gone waits for the end of the connection and returns the last GOAWAY.
func (h *h2client) gone(t testing.TB, d time.Duration) goaway {
	t.Helper()
	require.True(t, h.within(d, func() bool { return h.ended != nil }), "connection left open: %s", h)
	if len(h.goaways) == 0 {
		return goaway{}
	}
	return h.goaways[len(h.goaways)-1]
}

var hopByHopNames = []string{"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te"}

// soundHead is what holds for every header block that ferryman sends.
func soundHead(t testing.TB, h h2head) {
	t.Helper()
	for _, f := range h.fields {
		require.Equal(t, strings.ToLower(f[0]), f[0], "names are in lower case")
		require.True(t, isToken(f[0]), "name %q", f[0])
		require.NotContains(t, hopByHopNames, f[0])
		require.False(t, strings.ContainsAny(f[1], "\r\n\x00"), "%q", f)
		require.Equal(t, strings.Trim(f[1], " \t"), f[1], "%q", f)
	}
	require.NotEqual(t, "101", h.status)
	if h.status != "" && h.status[0] != '1' {
		require.Len(t, h.values("date"), 1, "%v", h.fields)
	}
}

// ownH2 is O6.
func ownH2(t testing.TB, s h2stream) {
	t.Helper()
	h := s.final()
	require.Equal(t, []string{"text/plain; charset=utf-8"}, h.values("content-type"))
	require.Len(t, h.values("content-length"), 1)
	require.Empty(t, h.values("server"))
	require.NotRegexp(t, leaks, fmt.Sprint(h.fields, string(s.data)))
}

// isEOF reports an orderly end of a connection.
func isEOF(err error) bool {
	return err != nil && !isReset(err) && !errors.Is(err, errSyntax)
}

// seen are the requests of upstreams from the first n heads on.
func (r *rig) seenBehind(before []*message) (fresh []*message) {
	for _, q := range r.allHeads() {
		if !slices.Contains(before, q) {
			fresh = append(fresh, q)
		}
	}
	return fresh
}

// upload sends a body as the proxy's windows allow, and ends the stream.
func (h *h2client) upload(t testing.TB, id uint32, body string) {
	t.Helper()
	for len(body) > 0 {
		n := min(len(body), 16384)
		h.claim(t, id, int64(n))
		h.data(id, n == len(body), body[:n])
		body = body[n:]
	}
}

// feed sends a piece of a body as the proxy's windows allow.
func (h *h2client) feed(t testing.TB, id uint32, piece string) {
	t.Helper()
	h.claim(t, id, int64(len(piece)))
	h.data(id, false, piece)
}

// claim waits until n bytes fit into the proxy's windows, and takes them.
func (h *h2client) claim(t testing.TB, id uint32, n int64) {
	t.Helper()
	h.until(t, "window", func() bool {
		s := h.stream(id)
		if s.end || s.reset != nil || h.ended != nil {
			return true
		}
		if !h.fits(id, n) {
			return false
		}
		s.sent += n
		h.sentData += n
		return true
	})
}

// fits reports whether the proxy's windows take n bytes more.
func (h *h2client) fits(id uint32, n int64) bool {
	s := h.stream(id)
	return int64(h.got[http2.SettingInitialWindowSize])+s.granted-s.sent >= n && 65535+h.granted-h.sentData >= n
}
