package conformance

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// The differential test sends a byte stream of any kind through the proxy and gives what arrived at the
// upstream to three parsers that know nothing of each other. If they read another number of requests,
// or other bodies, then ferryman has forwarded what can be read in two ways. The same stream cut into
// segments elsewhere must have the same effect.

// differential is one proxy before one logging upstream, used by one stream after another.
type differential struct{ r *rig }

func newDifferential(t testing.TB, m mode) *differential {
	r := newRig(t, m, func(s *setup) {
		s.cfg.Routes = s.cfg.Routes[:1]
		// A stream that leaves the proxy waiting for more ends soon.
		s.head, s.cfg.ClientIdleTimeout, s.cfg.BodyIdleTimeout = fuzzQuiet, fuzzQuiet, fuzzQuiet
		s.cfg.UpstreamTimeout = 10 * fuzzQuiet
	})
	r.U[1].playAlways(func(c *uconn, q *message) bool {
		return c.body(q) && c.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	return &differential{r}
}

// effect is what a stream has led to: the answers that the client saw, and what each upstream connection
// received.
type effect struct {
	statuses []int
	whole    []string // requests that arrived whole
	logs     [][]byte
}

const fuzzQuiet = 80 * time.Millisecond

// run sends the parts in segments of their own and waits for the end of the connection.
func (d *differential) run(t *testing.T, parts ...string) effect {
	u := d.r.U[1]
	u.mu.Lock()
	u.conns, u.heads, u.whole = nil, nil, nil
	u.mu.Unlock()
	nc, err := net.DialTimeout("tcp", d.r.addr, patience)
	require.NoError(t, err)
	defer nc.Close()
	go func() {
		for i, p := range parts {
			if i > 0 {
				pause(time.Millisecond)
			}
			if _, err := io.WriteString(nc, p); err != nil {
				return
			}
		}
	}()
	var e effect
	w := newWireReader(nc)
	method := func(i int) string { // of the request that is answered: HEAD has no body to read
		q := u.requests()
		if i < len(q) {
			return q[i].method
		}
		return "GET"
	}
	for {
		_ = nc.SetReadDeadline(time.Now().Add(patience))
		if _, err = w.br.Peek(1); err != nil {
			break
		}
		m, err := w.responseHead("GET")
		if err != nil {
			require.NotErrorIs(t, err, errSyntax, "what the client gets must be HTTP")
			break
		}
		if m.status < 200 {
			continue
		}
		if method(len(e.statuses)) == "HEAD" {
			m.framing = "none"
		}
		require.NotErrorIs(t, w.readBody(m), errSyntax, "what the client gets must be HTTP")
		e.statuses = append(e.statuses, m.status)
	}
	nc.Close()
	eventually(t, func() bool { return d.r.sum("ferryman_upstream_connections", `state="in_use"`) == 0 }, "an upstream connection stays in use")
	for _, c := range u.connections() {
		c.close()
		c.mu.Lock()
		if !c.check {
			e.logs = append(e.logs, slices.Clone(c.log))
		}
		c.mu.Unlock()
	}
	for _, q := range u.requests() {
		e.whole = append(e.whole, fmt.Sprintf("%s %x", q.line, q.sum))
	}
	return e
}

// last is appended to every stream, so that the proxy ends the connection as soon as it has got so far.
const last = "GET /LAST HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

// check runs a stream in one piece and in two and compares the readings of the log. Where the two differ
// it looks again, for on a busy machine a limit may end a stream between its halves.
func (d *differential) check(t *testing.T, stream string, cut int) {
	if len(stream) > 256<<10 {
		return
	}
	stream += last
	cut %= len(stream)
	var one, two effect
	for range 8 {
		one, two = d.run(t, stream), d.run(t, stream[:cut], stream[cut:])
		for _, log := range append(one.logs, two.logs...) {
			agree(t, log)
		}
		if slices.Equal(one.whole, two.whole) && slices.Equal(one.statuses, two.statuses) {
			return
		}
	}
	require.Equal(t, one.whole, two.whole, "cut at %d of %q", cut, clip(stream))
	require.Equal(t, one.statuses, two.statuses, "cut at %d of %q", cut, clip(stream))
}

// agree asserts that three parsers read a log as the same requests.
func agree(t *testing.T, log []byte) {
	want := readAll(log, func(br *bufio.Reader) (string, error) {
		q, err := (&wireReader{br: br}).request()
		if err != nil {
			return "", err
		}
		forwarded(t, q)
		return string(q.body), nil
	})
	byStandard := readAll(log, func(br *bufio.Reader) (string, error) {
		q, err := http.ReadRequest(br)
		if err != nil {
			return "", err
		}
		b, err := io.ReadAll(q.Body)
		return string(b), err
	})
	byFast := readAll(log, func(br *bufio.Reader) (string, error) {
		var q fasthttp.Request
		err := q.ReadLimitBody(br, 1<<30)
		if err == nil && q.MayContinue() {
			err = q.ContinueReadBody(br, 1<<30, false)
		}
		return string(q.Body()), err
	})
	require.Equal(t, want, byStandard, "net/http reads this otherwise:\n%q", log)
	require.Equal(t, want, byFast, "fasthttp reads this otherwise:\n%q", log)
}

// readAll reads requests up to the first that is not whole, and returns the bodies.
func readAll(log []byte, next func(*bufio.Reader) (string, error)) []string {
	br := bufio.NewReaderSize(bytes.NewReader(log), 256<<10)
	var bodies []string
	for {
		b, err := next(br)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && strings.Contains(err.Error(), "malformed") {
				bodies = append(bodies, "error: "+err.Error())
			}
			return bodies
		}
		bodies = append(bodies, b)
	}
}

// seeds are streams of areas 1 to 3, good and bad.
func seeds() []string {
	var all []string
	for _, line := range []string{"GET / HTTP/1.1", "GET  / HTTP/1.1", "GET / a HTTP/1.1", "GET /", "GET / HTTP/1.2", "GET / HTTP/2.0", "GET / HTTP/\r\r1.1",
		"PRI * HTTP/2.0", "a!#$%&'*+-.^_`|~ / HTTP/1.1", "GET http://b.example/x?q HTTP/1.1", "GET http://u:p@a/x HTTP/1.1", "GET //evil/x HTTP/1.1", "OPTIONS * HTTP/1.1",
		"GET /x#f HTTP/1.1", "GET /a\x00b HTTP/1.1", "GET /a\\b HTTP/1.1", "GET /?\"<>^`{|}\\ HTTP/1.1", "\r\nGET / HTTP/1.1", "HEAD / HTTP/1.1", "GET / HTTP/1.0", "CONNECT a:1 HTTP/1.1"} {
		all = append(all, line+"\r\nHost: a\r\n\r\n")
	}
	for _, field := range []string{"X : 1", " X: 1", "X: a\r\n b", "Foo", ": x", "X: a\x00b", "X: a\rb", "X: a\nY: b", "Na\nme: x", "A: 1\r\nB: 2\r\nA: 3", "Content-Length\r\n: 5",
		"Connection: X, close\r\nX: 1", "Connection: Content-Length", "Expect: 100-continue", "Upgrade: h2c\r\nConnection: Upgrade", "Host: b", "Via: 1.1 ferryman", "X-Forwarded-For: 1"} {
		all = append(all, "GET / HTTP/1.1\r\nHost: a\r\n"+field+"\r\n\r\n")
	}
	for _, field := range []string{"Content-Length: 5", "Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 5", "Content-Length: 5\r\nContent-Length: 6",
		"Content-Length: +5", "Content-Length: 005", "Content-Length: 5, 5", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked\x0b",
		"Transfer-Encoding:\r\n chunked", "Transfer_Encoding: chunked\r\nContent-Length: 40", "Transfer-Encoding\xa0: chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Content-Length: 0"} {
		all = append(all, "POST /p HTTP/1.1\r\nHost: a\r\n"+field+"\r\n\r\nhello", "POST /p HTTP/1.1\r\nHost: a\r\n"+field+"\r\n\r\n0\r\n\r\n"+smuggled)
	}
	for _, s := range badSizes {
		all = append(all, chunked(s+"hello\r\n0\r\n\r\n"))
	}
	for _, body := range []string{"5\r\nhello\r\n0\r\n\r\n", "5;a=\"b\"\r\nhello\r\n0\r\nX-T: 1\r\n\r\n", "0\r\n\r\n", "a\r\n0123456789\r\n000\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n",
		"1\r\nQ  2\r\nok\r\n0\r\n\r\n" + smuggled, "5\r\nhello\r\n0\r\n X: 1\r\n\r\n", "5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n"} {
		all = append(all, chunked(body))
	}
	all = append(all, request{m: "POST", body: "hello"}.String()+request{}.String()+request{m: "PUT", chunks: []string{"a", "bc"}}.String(), "BAD\r\n\r\n", "")
	for i := range all { // mutated, a request in a body may rightly become one of its own
		all[i] = strings.ReplaceAll(all[i], "/SMUGGLED", "/INSIDE")
	}
	return all
}

// mutate is one step away from s: bytes deleted, replaced or inserted, framing fields put in, doubled or
// taken out, lines joined, split and shifted.
func mutate(g *rand.Rand, s string) string {
	if s == "" {
		return last
	}
	at := g.IntN(len(s))
	special := []string{"\r", "\n", "\r\n", "\x00", ":", "\t", " ", ";", ",", "0", "\"", "\x0b", "\x85", "\xa0", "_", "%", "#"}
	fields := []string{"Content-Length: 5\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: identity\r\n", "Connection: close\r\n",
		"Connection: Content-Length\r\n", "Connection: Transfer-Encoding, keep-alive\r\n", "Host: a\r\n", " folded\r\n", "Expect: 100-continue\r\n"}
	lines := strings.SplitAfter(s, "\r\n")
	line := g.IntN(len(lines))
	switch g.IntN(9) {
	case 0:
		return s[:at] + s[at+1:]
	case 1:
		return s[:at] + special[g.IntN(len(special))] + s[at+1:]
	case 2:
		return s[:at] + special[g.IntN(len(special))] + s[at:]
	case 3:
		return strings.Join(slices.Insert(lines, line, fields[g.IntN(len(fields))]), "")
	case 4:
		return strings.Join(slices.Insert(lines, line, lines[line]), "")
	case 5:
		return strings.Join(slices.Delete(lines, line, line+1), "")
	case 6:
		lines[line] = strings.TrimSuffix(lines[line], "\r\n") + special[g.IntN(len(special))]
		return strings.Join(lines, "")
	case 7:
		return s + s[at:]
	default:
		i, j := min(at, len(s)-1), g.IntN(len(s))
		b := []byte(s)
		b[i], b[j] = b[j], b[i]
		return string(b)
	}
}

func TestDifferential_MutatedStreamsAreReadTheSameByEverybody(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		d := newDifferential(t, m)
		g := rand.New(rand.NewPCG(23, uint64(len(m.name))))
		all := seeds()
		for _, s := range all {
			d.check(t, s, g.IntN(1000))
		}
		for range scaled(300) {
			s := all[g.IntN(len(all))]
			if g.IntN(4) == 0 {
				s += all[g.IntN(len(all))]
			}
			for range 1 + g.IntN(3) {
				s = mutate(g, s)
			}
			d.check(t, s, g.IntN(1000))
		}
	}, plainModes()...)
}

func FuzzDifferential(f *testing.F) {
	fuzzing := flag.Lookup("test.fuzz").Value.String() != ""
	for i, s := range seeds() {
		if fuzzing || i%10 == 0 { // as an ordinary test, TestDifferential runs them all
			f.Add([]byte(s), uint16(7))
		}
	}
	var ds []*differential
	for _, m := range plainModes() {
		ds = append(ds, newDifferential(f, m))
	}
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		for _, d := range ds {
			d.check(t, string(stream), int(cut))
		}
	})
}
