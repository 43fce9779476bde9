package contender

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func serverTLS(t *testing.T, p Pair) *tls.Config {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(p.Cert, p.Key)
	require.NoError(t, err)
	return &tls.Config{Certificates: []tls.Certificate{cert}}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// relay answers as a proxy in front of the lab's upstream would.
type relay struct {
	forwardedFor []string // X-Forwarded-For as the upstream sees it
	proto        string
	body         string // of /echo
	status       int
	target       string // what the upstream sees instead of the real target; empty: that
	loses        bool   // the request's body
}

func (x relay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/echo" {
		w.WriteHeader(x.status)
		_, _ = io.WriteString(w, x.body)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if x.loses {
		body = nil
	}
	sum := sha256.Sum256(body)
	d := described{Method: r.Method, Target: r.RequestURI, BodyLength: len(body), BodySHA256: hex.EncodeToString(sum[:])}
	if x.target != "" {
		d.Target = x.target
	}
	for _, v := range x.forwardedFor {
		d.Fields = append(d.Fields, [2]string{"x-forwarded-for", v})
	}
	d.Fields = append(d.Fields, [2]string{"X-Forwarded-Proto", x.proto})
	_ = json.NewEncoder(w).Encode(d)
}

func good() relay {
	return relay{forwardedFor: []string{"127.0.0.1"}, proto: "http", body: "right", status: 200}
}

func TestVerify_OnlyARightProxyPasses(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*relay)
		want  string // in the error; empty: it passes
	}{
		{"right", func(*relay) {}, ""},
		{"wrong body", func(x *relay) { x.body = "wrong" }, "wrong body"},
		{"truncated body", func(x *relay) { x.body = "righ" }, "wrong body, 4 bytes instead of 5"},
		{"error status", func(x *relay) { x.status = 502 }, "status 502"},
		{"no forwarded address", func(x *relay) { x.forwardedFor = nil }, "X-Forwarded-For"},
		{"two forwarded addresses", func(x *relay) { x.forwardedFor = []string{"127.0.0.1", "127.0.0.1"} }, "X-Forwarded-For"},
		{"wrong scheme", func(x *relay) { x.proto = "https" }, "X-Forwarded-Proto"},
		{"rewritten target", func(x *relay) { x.target = "/verify/a/b?x=1&y=+" }, "instead of POST /verify/a%2Fb"},
		{"lost request body", func(x *relay) { x.loses = true }, "another body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := good()
			c.spoil(&x)
			server := httptest.NewServer(x)
			defer server.Close()
			r := Running{Contender: Contender{Forwards: true}, Site: Site{Listen: strings.TrimPrefix(server.URL, "http://")}}
			err := r.Verify(t.Context(), Request{Method: "POST", Path: "/echo", Body: []byte("name=value"), Want: []byte("right")})
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

func TestVerify_ARelayThatParsesNothingNeedNotForward(t *testing.T) {
	x := good()
	x.forwardedFor = nil
	server := httptest.NewServer(x)
	defer server.Close()
	r := Running{Site: Site{Listen: strings.TrimPrefix(server.URL, "http://")}}
	require.NoError(t, r.Verify(t.Context(), Request{Method: "GET", Path: "/echo", Want: []byte("right")}))
}

// The certificate is believed by who is told to, over both protocols, and the agreed cipher suite is
// checked.
func TestVerify_OverTLSWithThePair(t *testing.T) {
	pair, err := NewPair(t.TempDir())
	require.NoError(t, err)
	x := good()
	x.proto = "https"
	server := httptest.NewUnstartedServer(x)
	server.EnableHTTP2 = true
	server.TLS = serverTLS(t, pair)
	server.StartTLS()
	defer server.Close()
	r := Running{
		Contender: Contender{Forwards: true},
		Site:      Site{Listen: strings.TrimPrefix(server.URL, "https://"), TLS: true, Pair: pair},
	}
	for _, http2 := range []bool{false, true} {
		require.NoError(t, r.Verify(t.Context(), Request{Method: "GET", Path: "/echo", HTTP2: http2, Want: []byte("right")}))
	}
	older := httptest.NewUnstartedServer(x)
	older.TLS = serverTLS(t, pair)
	older.TLS.MaxVersion = 0x0303 // TLS 1.2
	older.StartTLS()
	defer older.Close()
	r.Site.Listen = strings.TrimPrefix(older.URL, "https://")
	require.ErrorContains(t, r.Verify(t.Context(), Request{Method: "GET", Path: "/echo", Want: []byte("right")}), "instead of TLS 1.3")
}

func TestSumOf_AddsTheSeriesOfOneMetric(t *testing.T) {
	page := "# HELP echo_requests_total Answers.\n# TYPE echo_requests_total counter\n" +
		"echo_requests_total{endpoint=\"echo\",status=\"200\"} 40\necho_requests_total{endpoint=\"health\",status=\"200\"} 2\n" +
		"echo_requests_total_more 100\nother 7\ngo_memstats_mallocs_total 1.5e+06\n"
	n, err := sumOf(strings.NewReader(page), "echo_requests_total")
	require.NoError(t, err)
	require.Equal(t, 42.0, n)
	n, err = sumOf(strings.NewReader(page), "go_memstats_mallocs_total")
	require.NoError(t, err)
	require.Equal(t, 1.5e6, n)
	_, err = sumOf(strings.NewReader(page), "absent_total")
	require.ErrorContains(t, err, "no metric absent_total")
	_, err = sumOf(strings.NewReader("odd one\n"), "odd")
	require.Error(t, err)
}
