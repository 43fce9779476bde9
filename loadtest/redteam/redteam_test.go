package redteam

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const module = "../../ferryman"

func TestDefences_AreWhereTheTableSays(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Defences {
		require.False(t, seen[d.Name], d.Name)
		seen[d.Name] = true
		text, err := os.ReadFile(filepath.Join(module, d.File))
		require.NoError(t, err, d.Name)
		require.Equal(t, 1, strings.Count(string(text), d.Old), "%s: %s is not once in %s: its row needs the new text", d.Name, d.Old, d.File)
		require.NotEqual(t, d.Old, d.New, d.Name)
		_, attack := Find(d.Attack)
		crossing := false
		for _, c := range Crossings {
			crossing = crossing || c.Name == d.Attack
		}
		require.True(t, attack || crossing && d.Race, "%s: no attack is called %s", d.Name, d.Attack)
	}
}

func TestAttacks_HaveNamesOfTheirOwnAndAreDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/attacks.md")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, a := range Attacks {
		require.False(t, seen[a.Name], a.Name)
		seen[a.Name] = true
		require.NotEmpty(t, a.About, a.Name)
		require.Contains(t, string(page), "| `"+a.Name+"` |", "docs/attacks.md")
	}
	for _, d := range Defences {
		require.Contains(t, string(page), "| "+d.Name+" |", "docs/attacks.md")
	}
}

func TestSwitchOff_WantsTheTextOnce(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("limit = 1\nother = 1\n"), 0o600))
	require.NoError(t, Defence{File: "a.go", Old: "limit = 1", New: "limit = 9"}.switchOff(dir))
	text, err := os.ReadFile(filepath.Join(dir, "a.go"))
	require.NoError(t, err)
	require.Equal(t, "limit = 9\nother = 1\n", string(text))
	require.ErrorContains(t, Defence{File: "a.go", Old: "limit = 1"}.switchOff(dir), "has 0 times")
	require.ErrorContains(t, Defence{File: "a.go", Old: " = "}.switchOff(dir), "has 2 times")
	require.Error(t, Defence{File: "b.go"}.switchOff(dir))
}

// decoded are the requests that bytes hold, read by another's decoder.
func decoded(t *testing.T, b []byte) (heads []*http2.MetaHeadersFrame) {
	t.Helper()
	f := http2.NewFramer(nil, bytes.NewReader(b))
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.MaxHeaderListSize = 1 << 20
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return heads
		}
		if h, ok := frame.(*http2.MetaHeadersFrame); ok {
			heads = append(heads, h)
		}
	}
}

func TestReferences_AreSmallAndDecodeToSixtyKilobytes(t *testing.T) {
	first, next := references(methodGET, "/hang/")
	heads := decoded(t, headers(headers(nil, 1, endStream, first), 3, endStream, next))
	require.Len(t, heads, 2)
	require.LessOrEqual(t, len(next)+9, 29)
	require.Equal(t, "/hang/", heads[1].PseudoValue("path"))
	size := 0
	for _, f := range heads[1].RegularFields() {
		size += len(f.Name) + len(f.Value)
	}
	require.Equal(t, 16*3803, size)
}

func TestHeaders_LongBlocksGoOnInContinuations(t *testing.T) {
	heads := decoded(t, headers(nil, 1, endStream, request("POST", "/x", "x-large", strings.Repeat("a", 74_000), "x-nonce", "1")))
	require.Len(t, heads, 1)
	require.Equal(t, "POST", heads[0].PseudoValue("method"))
	require.Len(t, heads[0].RegularFields()[0].Value, 74_000)
	open := headersOpen(headers(nil, 1, endStream, request("GET", "/")))
	require.Zero(t, open[4]&byte(http2.FlagHeadersEndHeaders))
}

func TestWindows_AreNotOverdrawn(t *testing.T) {
	w := newWindows()
	require.Equal(t, 65535, w.reserve(1, 100_000))
	require.Zero(t, w.reserve(3, 1), "all share the connection's")
	heard := func(b []byte) {
		f, err := http2.NewFramer(nil, bytes.NewReader(b)).ReadFrame()
		require.NoError(t, err)
		w.heard(f)
	}
	heard(frame(nil, http2.FrameWindowUpdate, 0, 0, word(1000)))
	require.Zero(t, w.reserve(1, 1))
	require.Equal(t, 1000, w.reserve(3, 100_000))
	heard(frame(nil, http2.FrameSettings, 0, 0, setting(http2.SettingInitialWindowSize, 65540)))
	heard(frame(nil, http2.FrameWindowUpdate, 0, 0, word(1000)))
	require.Equal(t, 5, w.reserve(1, 100))
}

func TestMatcher_SeesAnothersBody(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 1000} {
		m := &matcher{nonce: "123456"}
		body := pattern("123456", n)
		m.take([]byte(body[:n/3]))
		m.take([]byte(body[n/3:]))
		require.False(t, m.wrong, n)
		require.Equal(t, n, m.n)
	}
	m := &matcher{nonce: "123456"}
	m.take([]byte(pattern("123457", 100)))
	require.True(t, m.wrong)
}

func TestLatency_CountsWhatWasDueInAWhile(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	var samples []sample
	for i := range 200 {
		samples = append(samples, sample{at(i).UnixNano(), time.Duration(i) * time.Millisecond})
	}
	require.Equal(t, latency{100, 150 * time.Millisecond, 199 * time.Millisecond, 199 * time.Millisecond}, latencyOf(samples, at(100), at(200)))
	require.Zero(t, latencyOf(samples, at(300), at(400)))
}

func TestJudge_EachBoundBreaks(t *testing.T) {
	quiet := latency{n: 500, p50: time.Millisecond, p99: 2 * time.Millisecond, max: 3 * time.Millisecond}
	a := Attack{Name: "a", Peak: 100}
	for bound, spoil := range map[string]func(v *Verdict, f *faults){
		"":          func(*Verdict, *faults) {},
		"peak":      func(v *Verdict, _ *faults) { v.Peak = 101 },
		"after":     func(v *Verdict, _ *faults) { v.After = 31 },
		"p50":       func(v *Verdict, _ *faults) { v.During.p50 = 21 * time.Millisecond },
		"worst":     func(v *Verdict, _ *faults) { v.During.max = 4 * time.Second },
		"listening": func(v *Verdict, _ *faults) { v.During.n = 3 },
		"answers":   func(_ *Verdict, f *faults) { f.add("a wrong one") },
		"lost":      func(v *Verdict, _ *faults) { v.figures = []figure{{name: "lost", got: 2, bound: 1}} },
		"taken":     func(v *Verdict, _ *faults) { v.figures = []figure{{"taken", 1, 2, true, errors.New("why")}} },
	} {
		v, f := &Verdict{Before: 10, Peak: 100, After: 30, Undisturbed: quiet, During: quiet}, &faults{}
		spoil(v, f)
		v.judge(a, f)
		if bound == "" {
			require.True(t, v.OK(), v.String())
			continue
		}
		require.Len(t, v.Breaches, 1, bound)
		require.Equal(t, bound, v.Breaches[0].Bound)
		require.Equal(t, bound == "p50" || bound == "worst", v.onlyLate(), bound)
		require.Contains(t, v.String(), "FAIL")
	}
}

func TestBreaches_BeyondThoseOfAnotherRun(t *testing.T) {
	var before, now Breaches
	before.add("peak", "100 MiB")
	now.add("peak", "300 MiB")
	now.addLate("p50", "slow")
	require.Equal(t, Breaches{{"p50", "slow", true}}, now.beyond(before))
	require.True(t, before.beyond(now).OK())
}

func TestTrouble_FindsRacesAndPanics(t *testing.T) {
	require.NoError(t, trouble("level=INFO msg=drained\n"))
	for _, log := range []string{"x\nWARNING: DATA RACE\nRead at", "panic: nil map", "fatal error: concurrent map writes"} {
		require.Error(t, trouble(log))
	}
}

// TestEcho_NoticesWhatIsNotTheNonces has the upstream's side of the crossing test look at requests that are wrong.
func TestEcho_NoticesWhatIsNotTheNonces(t *testing.T) {
	for name, raw := range map[string]string{
		"target": "GET /echo/1 HTTP/1.1\r\nX-Nonce: 2\r\n\r\n",
		"body":   fmt.Sprintf("POST /echo/123456 HTTP/1.1\r\nX-Nonce: 123456\r\nContent-Length: 100\r\n\r\n%s", pattern("123457", 100)),
	} {
		f := &faults{}
		up, err := newUpstream(f, echoMoods...)
		require.NoError(t, err)
		for end := time.Now().Add(10 * time.Second); f.n.Load() == 0 && time.Now().Before(end); { // some it resets unread
			c, err := net.Dial("tcp", up.addr("echo"))
			require.NoError(t, err)
			_, _ = c.Write([]byte(raw))
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			_, _ = c.Read(make([]byte, 100))
			c.Close()
		}
		require.NotZero(t, f.n.Load(), name)
		up.close()
	}
}

// TestBystander_HoldsAnswersAgainstItsNonces has a bystander ask a server that is right for a while.
func TestBystander_HoldsAnswersAgainstItsNonces(t *testing.T) {
	wrong := make(chan struct{})
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nonce := r.Header.Get("X-Nonce")
		select {
		case <-wrong:
			nonce += "0"
		default:
		}
		w.Header().Set("X-Nonce", nonce)
	})}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	ctx, cancel := context.WithCancel(t.Context())
	f := &faults{}
	b := &bystander{r: &rig{ctx: ctx, addr: ln.Addr().String(), faults: f}}
	over := make(chan struct{})
	go func() {
		defer close(over)
		b.askAll()
	}()
	eventually(t, func() bool { return b.right.Load() > 30 }, "right answers")
	require.Zero(t, f.n.Load())
	close(wrong)
	eventually(t, func() bool { return f.n.Load() > 30 }, "wrong answers")
	cancel()
	<-over
	server.Close()
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}

func eventually(t *testing.T, cond func() bool, what string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !cond(); <-time.After(time.Millisecond) {
		require.True(t, time.Now().Before(end), what)
	}
}
