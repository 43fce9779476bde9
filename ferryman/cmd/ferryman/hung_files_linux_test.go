package main

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// goroutines is how many there are.
func (r *running) goroutines() int {
	r.t.Helper()
	n, err := strconv.Atoi(r.metric("go_goroutines"))
	require.NoError(r.t, err)
	return n
}

// runOn is runWith with files that lie where they lie.
func runOn(t *testing.T, config string, args ...string) *running {
	t.Helper()
	r := &running{config: config, process: launch(t, append([]string{"--config", config, "--bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0"}, args...)...)}
	r.front = r.find(`clients=([0-9.:]+)`)
	r.metrics = r.find(`metrics=([0-9.:]+)`)
	return r
}

// Case 286: the file system below the configuration hangs, at any step of a look.
func TestServe_HungConfigurationHoldsNothing(t *testing.T) {
	requireRoot(t)
	for name, after := range map[string]uint32{"at once": 0, "before it opens": fuseLookup, "before it reads": fuseOpen, "within": fuseRead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, _, _ := backend(t, "A")
			b, _, _ := backend(t, "B")
			dir := t.TempDir()
			oneCert, oneKey := pair(t, dir, "one")
			twoCert, twoKey := pair(t, dir, "two")
			f := mountFuse(t, map[string]string{"config.toml": route("/", a)})
			r := runOn(t, filepath.Join(f.dir, "config.toml"), "--tls-cert", oneCert, "--tls-key", oneKey)
			require.Equal(t, "one", served(t, r.front))
			f.put("config.toml", route("/", a)+route("/b", b))
			poll(t, 10*time.Second, "a change", func() bool { return r.metric(`ferryman_upstream_alive{upstream="`+b+`"}`) == "1" })

			f.hang(after)
			f.untilHeld()
			goroutines := r.goroutines()
			r.signal(syscall.SIGHUP)
			// The pair is another matter.
			texts := contents(t, twoCert, twoKey)
			require.NoError(t, os.WriteFile(oneKey, []byte(texts[1]), 0o600))
			require.NoError(t, os.WriteFile(oneCert, []byte(texts[0]), 0o600))
			poll(t, 10*time.Second, "the new pair", func() bool { return served(t, r.front) == "two" })
			require.LessOrEqual(t, r.goroutines(), goroutines+5, "they pile up")

			f.put("config.toml", route("/", a))
			f.resume()
			poll(t, 10*time.Second, "it goes on", func() bool { return r.metric(`ferryman_upstream_alive{upstream="`+b+`"}`) == "" })
			f.hang(after)
			f.untilHeld()
			began := time.Now()
			r.signal(syscall.SIGTERM)
			require.Zero(t, r.status(10*time.Second))
			require.Less(t, time.Since(began), 5*time.Second)
			require.Contains(t, r.output(), "msg=drained")
		})
	}
}

// Case 286: the pair lies on a file system that hangs; the configuration does not.
func TestServe_HungCertificateHoldsNothing(t *testing.T) {
	requireRoot(t)
	for _, name := range []string{"cert.pem", "key.pem"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, _, _ := backend(t, "A")
			b, _, _ := backend(t, "B")
			dir := t.TempDir()
			certFile, keyFile := pair(t, dir, "one")
			texts := contents(t, certFile, keyFile)
			f := mountFuse(t, map[string]string{"cert.pem": texts[0], "key.pem": texts[1]})
			if name == "cert.pem" {
				certFile = filepath.Join(f.dir, name)
			} else {
				keyFile = filepath.Join(f.dir, name)
			}
			config := filepath.Join(dir, "config.toml")
			require.NoError(t, os.WriteFile(config, []byte(route("/", a)), 0o644))
			r := runOn(t, config, "--tls-cert", certFile, "--tls-key", keyFile)
			f.hang(0)
			f.untilHeld()
			require.NoError(t, os.WriteFile(config, []byte(route("/", b)), 0o644))
			poll(t, 10*time.Second, "the new route", func() bool { return r.metric(`ferryman_upstream_alive{upstream="`+b+`"}`) == "1" })
			require.Equal(t, "one", served(t, r.front))
			r.signal(syscall.SIGTERM)
			require.Zero(t, r.status(5*time.Second))
		})
	}
}

// Case 286: with a request in flight, a second signal is the end.
func TestServe_SecondSignalEndsItWhereAFileSystemHangs(t *testing.T) {
	requireRoot(t)
	t.Parallel()
	a, waiting, _ := backend(t, "A")
	f := mountFuse(t, map[string]string{"config.toml": route("/", a)})
	r := runOn(t, filepath.Join(f.dir, "config.toml"))
	f.hang(0)
	f.untilHeld()
	go fetch("GET", "http://"+r.front+"/wait")
	<-waiting
	r.signal(syscall.SIGTERM)
	r.find("draining")
	began := time.Now()
	r.signal(syscall.SIGTERM)
	require.Equal(t, 1, r.status(5*time.Second))
	require.Less(t, time.Since(began), time.Second)
}

// Case 286: nothing is served yet, and nothing will be.
func TestServe_SignalEndsAStartThatHangs(t *testing.T) {
	requireRoot(t)
	a, _, _ := backend(t, "A")
	dir := t.TempDir()
	certFile, keyFile := pair(t, dir, "one")
	texts := contents(t, certFile, keyFile)
	plain := filepath.Join(dir, "config.toml")
	require.NoError(t, os.WriteFile(plain, []byte(route("/", a)), 0o644))
	f := mountFuse(t, map[string]string{"config.toml": route("/", a), "cert.pem": texts[0], "key.pem": texts[1]})
	at := func(name string) string { return filepath.Join(f.dir, name) }
	for _, files := range [][3]string{
		{at("config.toml"), certFile, keyFile}, {plain, at("cert.pem"), keyFile}, {plain, certFile, at("key.pem")},
	} {
		f.resume()
		f.hang(0)
		p := launch(t, "--config", files[0], "--tls-cert", files[1], "--tls-key", files[2], "--bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0")
		f.untilHeld()
		p.signal(syscall.SIGTERM)
		require.Zero(t, p.status(5*time.Second), files)
		require.NotContains(t, p.output(), "listening")
	}
}
