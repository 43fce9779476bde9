package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Case 324: a certificate that nears its end has a line when it is loaded, and each has a gauge.
func TestServe_TellsWhenItsCertificateExpires(t *testing.T) {
	t.Parallel()
	a, _, _ := backend(t, "A")
	dir := t.TempDir()
	day := 24 * time.Hour
	soon := time.Now().Add(10*day + time.Hour).Truncate(time.Second)
	certFile, keyFile := pairUntil(t, dir, "soon", soon)
	r := runWith(t, route("/", a), "--tls-cert", certFile, "--tls-key", keyFile)
	r.find(`level=WARN msg="certificate expires soon: renew it" name=\S+soon.pem expires=\S+ days=10`)
	expires := func() int64 {
		at, err := strconv.ParseFloat(r.metric(`ferryman_certificate_expiry_timestamp_seconds{name="`+certFile+`"}`), 64)
		require.NoError(t, err)
		return int64(at)
	}
	require.Equal(t, soon.Unix(), expires())

	replace := func(name string, end time.Time) {
		cert, key := pairUntil(t, t.TempDir(), name, end)
		texts := contents(t, cert, key)
		require.NoError(t, os.WriteFile(certFile, []byte(texts[0]), 0o600))
		require.NoError(t, os.WriteFile(keyFile, []byte(texts[1]), 0o600))
		poll(t, 10*time.Second, name, func() bool { return expires() == end.Unix() })
	}
	replace("late", time.Now().Add(90*day).Truncate(time.Second))
	replace("expired", time.Now().Add(-time.Hour).Truncate(time.Second))
	r.find(`level=ERROR msg="certificate has expired: renew it" name=\S+soon.pem`)
	require.Equal(t, "expired", served(t, r.front), "it is served all the same")
	require.Equal(t, 2, strings.Count(r.output(), "renew it"), "once for each")
}

// contents are those of files.
func contents(t *testing.T, names ...string) (texts []string) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	return texts
}
