package config

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Conformance cases 231 and 233, and 234 for what is written in two steps.
func TestWatch_SeesEveryWayOfSaving(t *testing.T) {
	ways := map[string]func(t *testing.T, path, text string){
		"in-place write": func(t *testing.T, path, text string) {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteString(text)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		},
		"write and rename": func(t *testing.T, path, text string) {
			write(t, path+".tmp", text)
			require.NoError(t, os.Rename(path+".tmp", path))
		},
		"backup-style rename and create": func(t *testing.T, path, text string) {
			require.NoError(t, os.Rename(path, path+"~"))
			write(t, path, text)
		},
		"remove and create": func(t *testing.T, path, text string) {
			require.NoError(t, os.Remove(path))
			write(t, path, text)
		},
		"copy over": func(t *testing.T, path, text string) {
			f, err := os.Create(path)
			require.NoError(t, err)
			for _, piece := range strings.SplitAfter(text, "\n") {
				_, err = io.WriteString(f, piece)
				require.NoError(t, err)
			}
			require.NoError(t, f.Close())
		},
		"truncate and write 100 ms later": func(t *testing.T, path, text string) {
			require.NoError(t, os.Truncate(path, 0))
			pass(100 * time.Millisecond)
			write(t, path, text)
		},
		"half now and half 100 ms later": func(t *testing.T, path, text string) {
			write(t, path, text[:len(text)/2])
			pass(100 * time.Millisecond)
			write(t, path, text)
		},
		"hard-link swap": func(t *testing.T, path, text string) {
			write(t, path+".new", text)
			require.NoError(t, os.Link(path+".new", path+".link"))
			require.NoError(t, os.Rename(path+".link", path))
			require.NoError(t, os.Remove(path+".new"))
		},
		"same size and time": func(t *testing.T, path, text string) {
			info, err := os.Stat(path)
			require.NoError(t, err)
			write(t, path, text)
			require.NoError(t, os.Chtimes(path, time.Time{}, info.ModTime()))
		},
		"directory removed and made again": func(t *testing.T, path, text string) {
			require.NoError(t, os.RemoveAll(filepath.Dir(path)))
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o755))
			write(t, path, text)
		},
		"directory renamed and made again": func(t *testing.T, path, text string) {
			old := filepath.Dir(path) + ".old"
			require.NoError(t, os.RemoveAll(old))
			require.NoError(t, os.Rename(filepath.Dir(path), old))
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o755))
			write(t, path, text)
		},
	}
	for name, save := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "etc")
			require.NoError(t, os.Mkdir(dir, 0o755))
			r := start(t, filepath.Join(dir, "config.toml"))
			for i := range 5 {
				r.save(func() { save(t, r.path, body(2+i)) })
				r.next(2 + i)
			}
			require.Empty(t, r.seen)
		})
	}
}

// Conformance case 232: the layout of a Kubernetes ConfigMap mount, and how the kubelet changes it.
func TestWatch_SeesConfigMapSwaps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stage := func(n int) string {
		name := fmt.Sprintf("..ts%d", n)
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		write(t, filepath.Join(dir, name, "config.toml"), body(n))
		return name
	}
	require.NoError(t, os.Symlink(stage(1), filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..data/config.toml", filepath.Join(dir, "config.toml")))
	r := start(t, filepath.Join(dir, "config.toml"))
	for n := 2; n < 7; n++ {
		r.save(func() {
			require.NoError(t, os.Symlink(stage(n), filepath.Join(dir, "..data_tmp")))
			require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
			require.NoError(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..ts%d", n-1))))
		})
		r.next(n)
	}
	require.Empty(t, r.seen)
}

// Conformance case 233: a write at the far end of a link makes no event here, just as one through a bind
// mount.
func TestWatch_SeesWritesWithoutEvents(t *testing.T) {
	t.Parallel()
	far, near := filepath.Join(t.TempDir(), "far.toml"), filepath.Join(t.TempDir(), "config.toml")
	write(t, far, body(1))
	require.NoError(t, os.Symlink(far, near))
	r := start(t, near)
	for n := 2; n < 7; n++ {
		r.save(func() { write(t, far, body(n)) })
		r.next(n)
	}
}

// Conformance case 234.
func TestWatch_ReportsAnEmptyFileOnceAndRecovers(t *testing.T) {
	t.Parallel()
	r := start(t, filepath.Join(t.TempDir(), "config.toml"))
	for i := range 5 {
		r.save(func() { require.NoError(t, os.Truncate(r.path, 0)) })
		r.nextError("there is none")
		r.save(func() { write(t, r.path, body(i+2)) })
		r.next(i + 2)
	}
	require.Empty(t, r.seen)
}

// Conformance case 235.
func TestWatch_ReportsWhatIsWrongOnceAndRecovers(t *testing.T) {
	t.Parallel()
	r := start(t, filepath.Join(t.TempDir(), "config.toml"))
	remove := func() { require.NoError(t, os.RemoveAll(r.path)) }
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"invalid TOML", func() { write(t, r.path, "failure_threshold == 1") }, "not valid TOML"},
		{"unknown key", func() { write(t, r.path, "x = 1\n"+body(1)) }, "unknown key"},
		{"bad number", func() { write(t, r.path, body(0)) }, "must be a whole number"},
		{"bad duration", func() { write(t, r.path, "upstream_timeout_secs = \"1s\"\n"+body(1)) }, "upstream_timeout_secs"},
		{"duplicate route", func() { write(t, r.path, body(1)+"[[routes]]\nprefix=\"/\"\nupstream=\"http://a:1\"\n") }, "already the prefix"},
		{"bad URL", func() { write(t, r.path, "[[routes]]\nprefix=\"/\"\nupstream=\"https://a:1\"\n") }, "without TLS"},
		{"bad port", func() { write(t, r.path, "[[routes]]\nprefix=\"/\"\nupstream=\"http://a:65536\"\n") }, "from 1 to 65535"},
		{"missing", remove, "no such file"},
		{"directory", func() { remove(); require.NoError(t, os.Mkdir(r.path, 0o755)) }, "is a directory"},
		{"symlink loop", func() { remove(); require.NoError(t, os.Symlink("config.toml", r.path)) }, "loop of symbolic links"},
		{"1 GiB", func() { remove(); write(t, r.path, ""); require.NoError(t, os.Truncate(r.path, 1<<30)) }, "more than 4 MiB"},
		{"NUL bytes", func() { write(t, r.path, body(1)+"\x00") }, "NUL bytes"},
	}
	for i, s := range steps {
		r.save(s.do)
		r.nextError(s.want)
		_ = os.Chtimes(r.path, time.Time{}, time.Now()) // a touch is no change
		pass(look + settle)
		require.Empty(t, r.seen, s.name)
		r.save(func() {
			remove()
			write(t, r.path, body(i+2))
		})
		r.next(i + 2)
	}
}

// Conformance case 236.
func TestWatch_FileGoneFor5SecondsAndBack(t *testing.T) {
	t.Parallel()
	r := start(t, filepath.Join(t.TempDir(), "config.toml"))
	r.save(func() { require.NoError(t, os.Remove(r.path)) })
	r.nextError("no such file")
	pass(5 * time.Second)
	require.Empty(t, r.seen)
	r.save(func() { write(t, r.path, body(1)) })
	r.next(1)
}

func TestWatch_TouchAndRewriteOfTheSameAreNoChange(t *testing.T) {
	t.Parallel()
	r := start(t, filepath.Join(t.TempDir(), "config.toml"))
	for range 5 {
		require.NoError(t, os.Chtimes(r.path, time.Now(), time.Now()))
		r.save(func() { write(t, r.path, body(1)) })
		pass(look + settle)
		r.forgive()
	}
	require.Empty(t, r.seen)
}

func TestWatch_PokeReportsAtOnceAndUnchanged(t *testing.T) {
	t.Parallel()
	r := start(t, filepath.Join(t.TempDir(), "config.toml"))
	for range 5 {
		r.poke <- struct{}{}
		r.next(1)
	}
	for n := 2; n < 7; n++ {
		r.save(func() {
			write(t, r.path, body(n))
			r.poke <- struct{}{}
		})
		r.next(n)
		r.forgive()
	}
	require.Less(t, r.quickest, settle, "poked, yet it waited")
	r.save(func() {
		write(t, r.path, "x")
		r.poke <- struct{}{}
	})
	r.nextError("not valid TOML")
	pass(look + settle)
	require.Empty(t, r.seen, "reported twice")
	close(r.poke)
	r.save(func() { write(t, r.path, body(9)) })
	r.next(9)
}

// Conformance case 237.
func TestWatch_StormIsBoundedAndItsLastWriteWins(t *testing.T) {
	t.Parallel()
	for name, save := range map[string]func(path, text string){
		"in place": func(path, text string) { write(t, path, text) },
		"rename":   func(path, text string) { write(t, path+".tmp", text); require.NoError(t, os.Rename(path+".tmp", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, filepath.Join(t.TempDir(), "config.toml"))
			began, slow := time.Now(), false
			for tick := time.NewTicker(2 * time.Millisecond); time.Since(began) < time.Second; <-tick.C {
				for n := 2; n <= 3; n++ {
					r.save(func() { save(r.path, body(n)) })
					slow = slow || r.slow
				}
			}
			lasted, reports, last := time.Since(began), 0, seen{}
			for quiet := false; !quiet; {
				require.Less(t, time.Since(began), patience)
				select {
				case last = <-r.seen:
					reports++
					if !slow {
						require.NoError(t, last.err)
					}
				case <-time.After(look + settle):
					quiet = last.threshold == 3
				}
			}
			require.LessOrEqual(t, reports, 1+int(lasted/settle))
		})
	}
}

func TestWatch_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Watch(ctx, "nowhere/config.toml", nil, nil), context.Canceled)
}
