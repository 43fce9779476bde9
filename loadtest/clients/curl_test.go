//go:build clients

package clients

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// transfer is what curl tells of one.
type transfer struct {
	Code     int    `json:"http_code"`
	Version  string `json:"http_version"`
	Exit     int    `json:"exitcode"`
	Error    string `json:"errormsg"`
	Connects int    `json:"num_connects"`
	Uploaded int64  `json:"size_upload"`
	Method   string `json:"method"`
	fields   http.Header
	body     string
	stderr   string
}

// curl runs it for one URL.
func curl(t *testing.T, args ...string) transfer {
	t.Helper()
	head, body := filepath.Join(t.TempDir(), "head"), filepath.Join(t.TempDir(), "body")
	r := finish(t, program(t, "curl"), append([]string{
		"-sS", "--max-time", "50", "--cacert", cert, "-D", head, "-o", body, "-w", "%{json}"}, args...)...)
	var x transfer
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &x), "%v: %s", args, r.stderr)
	x.stderr = r.stderr
	text, err := os.ReadFile(head)
	require.NoError(t, err, x.Error)
	x.fields = lastHead(string(text))
	if content, err := os.ReadFile(body); err == nil && x.Method != "HEAD" { // of which curl puts the head there
		x.body = string(content)
	}
	return x
}

// lastHead is the last of the heads that curl wrote down: others are informational.
func lastHead(text string) http.Header {
	heads := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r", "")), "\n\n")
	fields := http.Header{}
	for line := range strings.Lines(heads[len(heads)-1]) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":"); ok {
			fields.Add(name, strings.TrimSpace(value))
		}
	}
	return fields
}

// fetch is curl for what must succeed.
func fetch(t *testing.T, p protocol, args ...string) transfer {
	t.Helper()
	x := curl(t, append([]string{p.curl}, args...)...)
	require.Zero(t, x.Exit, "%v: %s", args, x.Error)
	require.Equal(t, p.version, x.Version)
	return x
}

// seen is what /fields tells of a request.
type seen struct {
	Method, Target string
	Fields         [][2]string
}

func (s seen) values(name string) (found []string) {
	for _, f := range s.Fields {
		if f[0] == name {
			found = append(found, f[1])
		}
	}
	return found
}

func parseSeen(t *testing.T, body string) (s seen) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(body), &s), body)
	return s
}

func TestCurl_EachMethodReachesTheUpstreamAsItWasSent(t *testing.T) {
	t.Parallel()
	u := uvicorn(t)
	everywhere(t, route("/", u.addr), overAll, func(t *testing.T, f *front, p protocol) {
		url := f.url + "/fields?a=b&c=%20"
		for _, method := range []string{"GET", "DELETE", "OPTIONS", "PATCH"} {
			s := parseSeen(t, fetch(t, p, "-X", method, url).body)
			require.Equal(t, method, s.Method)
			require.Equal(t, []string{"1.1 ferryman"}, s.values("via"))
			require.Equal(t, []string{"127.0.0.1"}, s.values("x-forwarded-for"))
			require.Equal(t, []string{f.scheme}, s.values("x-forwarded-proto"))
			require.Equal(t, []string{f.addr}, s.values("host"))
			require.Empty(t, s.values("transfer-encoding"), method)
		}
		head := fetch(t, p, "-I", f.url+"/bytes?n=5000")
		require.Equal(t, 200, head.Code)
		require.Equal(t, "5000", head.fields.Get("Content-Length"))
		for _, method := range []string{"POST", "PUT"} {
			s := parseSeen(t, fetch(t, p, "-X", method, "-d", "some=form", url).body)
			require.Equal(t, method, s.Method)
			require.Equal(t, []string{"9"}, s.values("content-length"))
			require.Equal(t, []string{"application/x-www-form-urlencoded"}, s.values("content-type"))
		}
		body := fetch(t, p, "-F", "file=@"+key, f.url+"/sum").body
		require.Contains(t, body, `"sha256"`)
	})
}

// A POST without a body: curl names no length over HTTP/2.
func TestCurl_PostOfNothingHasALength(t *testing.T) {
	t.Parallel()
	u := uvicorn(t)
	everywhere(t, route("/", u.addr), overAll, func(t *testing.T, f *front, p protocol) {
		for _, method := range []string{"POST", "PUT"} {
			args := []string{"-X", method, f.url + "/fields"}
			if p.version == "1.1" {
				args = append(args, "-d", "")
			}
			s := parseSeen(t, fetch(t, p, args...).body)
			require.Equal(t, []string{"0"}, s.values("content-length"), method)
			require.Empty(t, s.values("transfer-encoding"), method)
		}
	})
}

// curl --http2 asks for h2c in plaintext, other clients for TLS: a server may go on as if nobody had asked.
func TestCurl_OffersOfAnUpgradeThatMayBeDeclinedAreServed(t *testing.T) {
	t.Parallel()
	u := uvicorn(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			f := start(t, engine, false, route("/", u.addr))
			for name, args := range map[string][]string{
				"curl --http2": {"--http2"},
				"TLS":          {"-H", "Connection: Upgrade", "-H", "Upgrade: TLS/1.2"},
				"HTTP/2.0":     {"-H", "Connection: Upgrade", "-H", "Upgrade: HTTP/2.0"},
			} {
				x := curl(t, append(args, f.url+"/fields")...)
				require.Equal(t, 200, x.Code, "%s: %s", name, x.body)
				require.Empty(t, parseSeen(t, x.body).values("upgrade"), name)
			}
			x := curl(t, "--http2", "-d", "a body", f.url+"/sum")
			require.Contains(t, x.body, `"bytes": 6`)
		})
	}
}

func TestCurl_FiftyURLsShareAConnection(t *testing.T) {
	t.Parallel()
	n := nginx(t)
	everywhere(t, route("/", n.addr), reused, func(t *testing.T, f *front, p protocol) {
		r := finish(t, program(t, "curl"), "-sS", p.curl, "--cacert", cert, "-o", filepath.Join(t.TempDir(), "#1"),
			"-w", "%{http_code} %{num_connects}\\n", f.url+"/hello?[1-50]")
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, "200 1\n"+strings.Repeat("200 0\n", 49), r.stdout)
	})
}

func TestCurl_HundredTransfersAtOnce(t *testing.T) {
	t.Parallel()
	u := uvicorn(t)
	everywhere(t, route("/", u.addr), reused, func(t *testing.T, f *front, p protocol) {
		dir := t.TempDir()
		args := []string{"-sS", p.curl, "--cacert", cert, "--parallel", "--parallel-max", "100", "-w", "%{http_code}\\n"}
		for i := range 100 {
			args = append(args, "-o", filepath.Join(dir, strconv.Itoa(i)), f.url+"/bytes?n="+strconv.Itoa(100_000+i))
		}
		r := finish(t, program(t, "curl"), args...)
		require.Zero(t, r.code, r.stderr)
		require.Equal(t, strings.Repeat("200\n", 100), r.stdout)
		for i := range 100 {
			text, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(i)))
			require.NoError(t, err)
			require.Equal(t, string(pattern(100_000+i)), string(text))
		}
	})
}

func TestCurl_CompressedAnswersAreWhole(t *testing.T) {
	t.Parallel()
	n := nginx(t)
	text, err := os.ReadFile(filepath.Join(n.dir, "www", "text.txt"))
	require.NoError(t, err)
	everywhere(t, route("/", n.addr), overAll, func(t *testing.T, f *front, p protocol) {
		x := fetch(t, p, "--compressed", f.url+"/text.txt")
		require.Equal(t, "gzip", x.fields.Get("Content-Encoding"))
		require.Equal(t, string(text), x.body)
	})
}
