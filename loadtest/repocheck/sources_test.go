package repocheck

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	proxy     = "github.com/Bunty9/ferryman/ferryman"
	mostLines = 250
)

func TestProxy_NoFileIsLong(t *testing.T) {
	list := files(t, func(name string) bool {
		return strings.HasPrefix(name, "ferryman/") && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
	})
	for _, name := range list {
		if n := strings.Count(read(t, name), "\n"); n > mostLines {
			t.Errorf("%s has %d lines, over %d: split it by concept", name, n, mostLines)
		}
	}
}

// One sitting: what decides a request's fate.
var core, mostOfCore = []string{".", "exchange", "route", "breaker", "upstream", "health"}, 2600

func TestProxy_WhatDecidesARequestsFateReadsInOneSitting(t *testing.T) {
	sum := 0
	for _, dir := range core {
		list, err := filepath.Glob(filepath.Join(root, "ferryman", dir, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, list, dir)
		for _, name := range list {
			if !strings.HasSuffix(name, "_test.go") {
				text, err := os.ReadFile(name)
				require.NoError(t, err)
				sum += strings.Count(string(text), "\n")
			}
		}
	}
	require.LessOrEqual(t, sum, mostOfCore, "lines of %v together", core)
	require.Greater(t, sum, mostOfCore/2, "it looks in the wrong place")
}

func TestPackages_HaveExactlyOneDoc(t *testing.T) {
	docs, all := map[string][]string{}, map[string]bool{}
	for _, name := range files(t, func(name string) bool { return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") }) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.PackageClauseOnly|parser.ParseComments)
		require.NoError(t, err)
		all[path.Dir(name)] = true
		if f.Doc == nil {
			continue
		}
		docs[path.Dir(name)] = append(docs[path.Dir(name)], name)
		if strings.HasPrefix(name, "ferryman/") && path.Base(name) != "doc.go" {
			t.Errorf("%s: the doc of a package of the proxy is in its doc.go", name)
		}
		want := "Package " + f.Name.Name
		if f.Name.Name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(f.Doc.Text(), want) {
			t.Errorf("%s: its doc must start with %q", name, want)
		}
	}
	for dir := range all {
		if n := len(docs[dir]); n != 1 {
			t.Errorf("%s has %d package docs %v: one is right", dir, n, docs[dir])
		}
	}
}

// What each package of the proxy may import of the proxy, beside the standard library, and of others.
var imports = map[string]struct{ own, others string }{
	"":                   {"breaker certificate config dial exchange frontend h1 health internal/limits logqueue metrics netloop route upstream", ""},
	"frontend":           {"exchange h1 h2 netloop", "golang.org/x/net/http2"},
	"exchange":           {"breaker h1 netloop route tunnel upstream", ""},
	"upstream":           {"breaker dial h1 netloop pool", ""},
	"breaker":            {"", ""},
	"route":              {"", ""},
	"health":             {"", ""},
	"h1":                 {"", ""},
	"h2":                 {"h1", "golang.org/x/net/http2 golang.org/x/net/http/httpguts"},
	"pool":               {"netloop", ""},
	"tunnel":             {"h1 netloop", ""},
	"dial":               {"netloop", ""},
	"netloop":            {"", "golang.org/x/sys/unix"},
	"internal/limits":    {"", ""},
	"logqueue":           {"", ""},
	"internal/filewatch": {"", "github.com/fsnotify/fsnotify"},
	"config":             {"internal/filewatch", "github.com/pelletier/go-toml/v2"},
	"certificate":        {"internal/filewatch", ""},
	"metrics":            {"", "github.com/prometheus/client_golang"},
	"cmd/ferryman":       {". config logqueue", ""},
	"conformance":        {"", ""}, // its tests use the proxy; they are not asked here
}

// What a package may not import of the standard library: an exchange is the same over TLS.
var banned = map[string]string{"exchange": "crypto/tls", "upstream": "crypto/tls"}

// Options of the library name a registerer, the one type of the Prometheus client outside of metrics.
var exceptions = map[string]string{proxy: "github.com/prometheus/client_golang/prometheus"}

func TestProxy_ImportsPointDownward(t *testing.T) {
	for _, goos := range []string{"linux", "darwin"} {
		t.Setenv("GOOS", goos)
		t.Setenv("CGO_ENABLED", "0")
		for dec := json.NewDecoder(strings.NewReader(output(t, "ferryman", "go", "list", "-json=ImportPath,Imports", "./..."))); ; {
			var p struct {
				ImportPath string
				Imports    []string
			}
			err := dec.Decode(&p)
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, proxy), "/")
			_, known := imports[name]
			require.True(t, known, "a new package %s: say here what it may import, and in docs/architecture.md what it is", p.ImportPath)
			for _, i := range p.Imports {
				if banned[name] == i || !mayImport(name, i) && exceptions[p.ImportPath] != i {
					t.Errorf("%s imports %s", p.ImportPath, i)
				}
			}
		}
	}
}

func mayImport(name, path string) bool {
	rule := imports[name]
	if path == proxy {
		return rule.own == "." || strings.HasPrefix(rule.own, ". ")
	}
	if own, ok := strings.CutPrefix(path, proxy+"/"); ok {
		for allowed := range strings.FieldsSeq(rule.own) {
			if own == allowed {
				return true
			}
		}
		return false
	}
	first, _, _ := strings.Cut(path, "/")
	if !strings.Contains(first, ".") {
		return true // the standard library
	}
	for allowed := range strings.FieldsSeq(rule.others) {
		if path == allowed || strings.HasPrefix(path, allowed+"/") {
			return true
		}
	}
	return false
}

func TestMayImport_RefusesWhatIsNotAllowed(t *testing.T) {
	require.True(t, mayImport("breaker", "sync/atomic"))
	require.False(t, mayImport("breaker", proxy+"/route"))
	require.False(t, mayImport("breaker", proxy))
	require.False(t, mayImport("health", "github.com/prometheus/client_golang/prometheus"))
	require.False(t, mayImport("metrics", "github.com/pelletier/go-toml/v2"))
	require.True(t, mayImport("cmd/ferryman", proxy))
}
