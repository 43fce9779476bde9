//go:build clients

package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// asked is a request: curl's options, the path last.
type asked []string

var ofFiles = []asked{
	{"/page.html"}, {"-I", "/page.html"}, {"/text.txt"}, {"-H", "Accept-Encoding: gzip", "/text.txt"}, {"/empty"}, {"-I", "/empty"},
	{"/folder"}, {"/folder/"}, {"/folder?a=b"}, {"/nothing"}, {"-I", "/nothing"},
	{"/page.html?a=%zz&b=%00"}, {"/te%78t.txt"}, {"/page%2Ehtml"}, {"/folder%2Findex.html"}, {"--path-as-is", "//page.html"},
	{"-H", "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT", "/page.html"}, {"-H", "If-None-Match: *", "/page.html"},
	{"-H", "If-Unmodified-Since: Fri, 01 Jan 1999 00:00:00 GMT", "/page.html"},
	{"-r", "0-99", "/text.txt"}, {"-r", "-1", "/text.txt"}, {"-r", "0-1,5-9,100-", "/text.txt"}, {"-r", "999999-", "/text.txt"},
	{"-H", "Range: lines=1-2", "/text.txt"}, {"-r", "0-9", "-H", `If-Range: "other"`, "/text.txt"},
	{"-d", "a=b", "/page.html"}, {"-X", "DELETE", "/page.html"}, {"-X", "OPTIONS", "/page.html"}, {"-X", "UNKNOWN", "/page.html"},
}

var ofApplications = []asked{
	{"/bytes?n=0"}, {"/bytes?n=1"}, {"/bytes?n=300000"}, {"-I", "/bytes?n=300000"}, {"/chunks?n=0"}, {"/chunks?n=200"}, {"/chunks?n=3&times=20000"},
	{"/status?code=200"}, {"-I", "/status?code=200"}, {"/status?code=201"}, {"/status?code=204"}, {"/status?code=302"}, {"/status?code=304"},
	{"/status?code=403"}, {"/status?code=404"}, {"/status?code=418"}, {"/status?code=500"}, {"-X", "DELETE", "/status?code=204"}, {"/nothing"},
	{"-d", "a=b&c=d", "/sum"}, {"-d", "", "/sum"}, {"-X", "PUT", "-d", "x", "/sum"}, {"-F", "a=b", "/status?code=201"}, {"-X", "PATCH", "-d", "{}", "/sum"},
	{"/fields?a=b&a=c&%20=+&=;"}, {"-X", "OPTIONS", "/fields"}, {"-X", "PURGE", "/fields"}, {"-d", "a=b", "/fields"},
	{"-H", "Cookie: a=1; b=2", "-H", "X-One: first", "-H", "X-One: second", "-H", "X-Empty;", "-H", "Accept-Language: de, en;q=0.5", "/fields"},
	{"-H", "X-Long: " + strings.Repeat("long", 1000), "/fields"}, {"-H", "Authorization: Basic YTpi", "-e", "http://example.com/", "-A", "", "/fields"},
}

// What a client gets through ferryman is what it would get from the server itself.
func TestDifferential_FerrymanChangesNothingThatAClientSees(t *testing.T) {
	for _, side := range []struct {
		name   string
		launch func(*testing.T) *server
		asks   []asked
	}{
		{"nginx", nginx, ofFiles},
		{"http.server", httpServer, ofFiles},
		{"gunicorn sync", func(t *testing.T) *server { return gunicorn(t, "sync", "--workers", "4") }, ofApplications},
		{"gunicorn gthread", func(t *testing.T) *server { return gunicorn(t, "gthread", "--threads", "8") }, ofApplications},
		{"uvicorn", func(t *testing.T) *server { return uvicorn(t) }, ofApplications},
	} {
		t.Run(side.name, func(t *testing.T) {
			t.Parallel()
			s := side.launch(t)
			direct := make([]outcome, len(side.asks))
			for i, a := range side.asks {
				direct[i] = ask(t, overHTTP1[0], "http://"+s.addr, a)
			}
			everywhere(t, route("/", s.addr), overAll, func(t *testing.T, f *front, p protocol) {
				for i, a := range side.asks {
					t.Run(fmt.Sprintf("%.60s", strings.Join(a, " ")), func(t *testing.T) {
						require.Equal(t, direct[i], ask(t, p, f.url, a))
					})
				}
			})
		})
	}
}

// outcome is what a client sees, but for what any proxy may change.
type outcome struct {
	code   int
	fields http.Header
	seen   *seen  // of /fields
	sum    string // of other bodies
	length int
}

func ask(t *testing.T, p protocol, base string, a asked) outcome {
	t.Helper()
	last := len(a) - 1
	x := curl(t, append(append([]string{p.curl}, a[:last]...), base+a[last])...)
	require.Zero(t, x.Exit, x.Error)
	o := outcome{code: x.Code, fields: x.fields}
	for _, name := range []string{"Connection", "Keep-Alive", "Transfer-Encoding", "Via", "Date"} {
		o.fields.Del(name)
	}
	if place := o.fields.Get("Location"); place != "" {
		o.fields.Set("Location", resolved(t, base+a[last], place))
	}
	// Nginx numbers the boundaries of its answers.
	boundary := regexp.MustCompile(`0\d{19}`)
	o.fields.Set("Content-Type", boundary.ReplaceAllString(o.fields.Get("Content-Type"), "boundary"))
	if strings.HasPrefix(a[last], "/fields") {
		s := parseSeen(t, x.body)
		o.seen = withoutProxy(t, s, strings.SplitAfter(base, "://")[1])
		o.fields.Del("Content-Length")
		return o
	}
	body := boundary.ReplaceAllString(x.body, "boundary")
	h := sha256.Sum256([]byte(body))
	o.sum, o.length = hex.EncodeToString(h[:]), len(body)
	return o
}

// resolved is where a client goes from there, without the server's address if that is where it was.
func resolved(t *testing.T, from, place string) string {
	t.Helper()
	base, err := url.Parse(from)
	require.NoError(t, err)
	to, err := base.Parse(place)
	require.NoError(t, err)
	if to.Scheme == base.Scheme && to.Host == base.Host {
		return to.RequestURI()
	}
	return to.String()
}

// withoutProxy leaves out what tells of ferryman, and the host, which must be the one that the client asked.
func withoutProxy(t *testing.T, s seen, host string) *seen {
	t.Helper()
	require.Equal(t, []string{host}, s.values("host"))
	s.Fields = slices.DeleteFunc(s.Fields, func(f [2]string) bool {
		return slices.Contains([]string{"host", "via", "x-forwarded-for", "x-forwarded-proto"}, f[0])
	})
	return &s
}
