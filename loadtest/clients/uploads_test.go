//go:build clients

package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// sized is a file of so many bytes, the first of the large one.
func sized(t *testing.T, n int64) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), fmt.Sprint(n))
	require.NoError(t, writeRandom(name, n))
	return name
}

func stripped(prefix, upstream string) string { return route(prefix, upstream, "strip_prefix = true") }

func TestUpload_HundredMegabytesArriveAsTheyWere(t *testing.T) {
	t.Parallel()
	n, u := nginx(t), uvicorn(t)
	sync, threads := gunicorn(t, "sync", "--workers", "3"), gunicorn(t, "gthread", "--threads", "8")
	config := stripped("/nginx", n.addr) + route("/uvicorn", u.addr) + route("/sync", sync.addr) + route("/gthread", threads.addr)
	want := sum(t, large)
	everywhere(t, config, overAll, func(t *testing.T, f *front, p protocol) {
		name := "put/" + p.name + f.addr
		require.Equal(t, 201, fetch(t, p, "-T", large, f.url+"/nginx/"+name).Code)
		require.Equal(t, want, sum(t, filepath.Join(n.dir, name)))
		require.NoError(t, os.Remove(filepath.Join(n.dir, name)))
		for _, prefix := range []string{"/uvicorn", "/sync", "/gthread"} {
			x := fetch(t, p, "-T", large, f.url+prefix+"/sum")
			require.Equal(t, fmt.Sprintf(`{"bytes": %d, "sha256": %q}`, largeSize, want), x.body, prefix)
		}
	})
}

// A body without a length: chunks over HTTP/1.1, streams that end over HTTP/2.
func TestUpload_OfUnknownLengthArrivesAsItWas(t *testing.T) {
	t.Parallel()
	n, u, threads := nginx(t), uvicorn(t), gunicorn(t, "gthread", "--threads", "8")
	config := stripped("/nginx", n.addr) + route("/uvicorn", u.addr) + route("/gthread", threads.addr)
	file := sized(t, 3<<20)
	want := sum(t, file)
	everywhere(t, config, overAll, func(t *testing.T, f *front, p protocol) {
		upload := func(url string) transfer {
			// curl names no length for what is a pipe.
			args := []string{"-c", `exec "$0" "$@" < <(cat "$FILE")`, program(t, "curl"), "-sS", p.curl, "--cacert", cert, "-T", "-", "-w", "\\n%{http_code}", url}
			r := finish(t, "/usr/bin/env", append([]string{"FILE=" + file, "bash"}, args...)...)
			require.Zero(t, r.code, r.stderr)
			return transfer{body: r.stdout}
		}
		name := "put/" + p.name + f.addr
		require.Equal(t, "\n201", upload(f.url+"/nginx/"+name).body)
		require.Equal(t, want, sum(t, filepath.Join(n.dir, name)))
		for _, prefix := range []string{"/uvicorn", "/gthread"} {
			require.Equal(t, fmt.Sprintf(`{"bytes": %d, "sha256": %q}`+"\n200", 3<<20, want), upload(f.url+prefix+"/sum").body, prefix)
		}
	})
}

func TestUpload_ThatIsAnnouncedWaitsForTheUpstream(t *testing.T) {
	t.Parallel()
	n, u, threads := nginx(t), uvicorn(t), gunicorn(t, "gthread", "--threads", "8")
	config := stripped("/nginx", n.addr) + route("/uvicorn", u.addr) + route("/gthread", threads.addr)
	file := sized(t, 2<<20)
	everywhere(t, config, overHTTP1, func(t *testing.T, f *front, p protocol) { // curl does not ask over HTTP/2; nghttp does
		for _, path := range []string{"/nginx/put/" + f.addr, "/uvicorn/sum", "/gthread/sum"} {
			x := fetch(t, p, "-v", "-T", file, f.url+path)
			require.Less(t, x.Code, 300, path)
			require.Contains(t, x.stderr, "< HTTP/1.1 100", path)
		}
		x := fetch(t, p, "-v", "-T", file, f.url+"/nginx/too-large")
		require.Equal(t, 413, x.Code)
		require.Zero(t, x.Uploaded, "it was refused before a byte of it was sent")
		require.NotContains(t, x.stderr, "< HTTP/1.1 100")
	})
}

// earlyAnswers come before the upload is complete. Each upstream goes on in its own way: nginx reads on for a
// while, or for as long as the connection is to be kept; uvicorn reads on; gunicorn closes at once.
var earlyAnswers = []struct {
	name, path string
	status     int
	body       string
}{
	{"nginx 413", "/nginx/too-large", 413, "Request Entity Too Large"},
	{"nginx 403", "/nginx/refuse", 403, "refused by the upstream"},
	{"uvicorn 403", "/uvicorn/refuse?status=403", 403, "refused by the upstream"},
	{"gunicorn 413", "/sync/refuse?status=413", 413, "refused by the upstream"},
	{"no route", "/nowhere", 404, "no route"},
	{"open circuit", "/dead", 503, "upstream unavailable"},
}

func TestUpload_ThatIsAnsweredEarlyShowsTheAnswer(t *testing.T) {
	t.Parallel()
	n, u, sync := nginx(t), uvicorn(t), gunicorn(t, "sync", "--workers", "3")
	dead := freeAddr(t)
	config := "default_cooldown_secs = 3600\n" + stripped("/nginx", n.addr) + route("/uvicorn", u.addr) + route("/sync", sync.addr) + route("/dead", dead)
	file := sized(t, 8<<20)
	everywhere(t, config, overAll, func(t *testing.T, f *front, p protocol) {
		for range 3 {
			_, _, _ = labenv.Ask(t.Context(), "GET", f.url+"/dead", "") // 502, until the circuit opens
		}
		f.becomes(t, dead, "open")
		for _, early := range earlyAnswers {
			t.Run(early.name, func(t *testing.T) {
				const runs = 20
				enough := runs
				if p.name == "h2c" { // curl has only so long to read the answer, which a busy machine may not leave it
					enough -= 2
				}
				shown, last := 0, transfer{}
				for range runs {
					x := curl(t, p.curl, "-H", "Expect:", "-T", file, f.url+early.path)
					if x.Exit == 0 && x.Code == early.status {
						require.Contains(t, x.body, early.body)
						shown++
					} else {
						last = x
					}
				}
				require.GreaterOrEqual(t, shown, enough, "the others came to this: %d, curl's %d: %s", last.Code, last.Exit, last.Error)
			})
		}
	})
}

func TestUpload_AfterARefusalTheConnectionOrTheNextOneServes(t *testing.T) {
	t.Parallel()
	n := nginx(t)
	file := sized(t, 8<<20)
	everywhere(t, stripped("/nginx", n.addr), reused, func(t *testing.T, f *front, p protocol) {
		r := finish(t, program(t, "curl"), "-sS", p.curl, "--cacert", cert, "-H", "Expect:", "-w", "%{http_code}\\n", "-o", "/dev/null", "-T", file, f.url+"/nginx/too-large",
			"--next", "-sS", p.curl, "--cacert", cert, "-w", "%{http_code}\\n", "-o", "/dev/null", f.url+"/nginx/hello")
		require.Equal(t, "413\n200\n", r.stdout, r.stderr)
	})
}
