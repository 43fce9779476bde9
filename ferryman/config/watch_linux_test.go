package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// resources counts goroutines, open descriptors and inotify watches.
func resources(t *testing.T) (goroutines, descriptors, watches int) {
	t.Helper()
	infos, err := filepath.Glob("/proc/self/fdinfo/*")
	require.NoError(t, err)
	for _, name := range infos {
		if text, err := os.ReadFile(name); err == nil {
			descriptors++
			watches += strings.Count(string(text), "inotify wd:")
		}
	}
	return runtime.NumGoroutine(), descriptors, watches
}

// settles polls by itself: require.Eventually adds goroutines of its own.
func settles(t *testing.T, g0, d0, w0 int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; runtime.Gosched() {
		g, d, w := resources(t)
		if g <= g0 && d <= d0 && w == w0 {
			return
		}
		require.True(t, time.Now().Before(deadline), "goroutines %d, were %d; descriptors %d, were %d; watches %d, were %d", g, g0, d, d0, w, w0)
	}
}

func TestWatch_LeavesNothingBehind(t *testing.T) {
	start(t, filepath.Join(t.TempDir(), "warm.toml")).stop()
	g0, d0, w0 := resources(t)
	for range 20 {
		dir := filepath.Join(t.TempDir(), "etc")
		require.NoError(t, os.Mkdir(dir, 0o755))
		r := start(t, filepath.Join(dir, "config.toml"))
		write(t, r.path, body(2))
		r.stop()
	}
	settles(t, g0, d0, w0)
}

func TestWatch_HoldsOneWatchHoweverOftenTheDirectoryIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc")
	require.NoError(t, os.Mkdir(dir, 0o755))
	r := start(t, filepath.Join(dir, "config.toml"))
	g0, d0, w0 := resources(t)
	for i := range 8 {
		r.save(func() {
			if i%2 == 0 {
				require.NoError(t, os.Rename(dir, filepath.Join(t.TempDir(), "gone")))
			} else {
				require.NoError(t, os.RemoveAll(dir))
			}
			require.NoError(t, os.Mkdir(dir, 0o755))
			write(t, r.path, body(i+2))
		})
		r.next(i + 2)
	}
	require.Equal(t, 1, w0)
	settles(t, g0, d0, w0)
}

func TestLoad_DoesNotHangOnANamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, syscall.Mkfifo(path, 0o644))
	done := make(chan error, 1)
	go func() { _, err := Load(path); done <- err }()
	select {
	case err := <-done:
		require.EqualError(t, err, path+": is not a regular file: copy its content into one")
	case <-time.After(5 * time.Second):
		require.Fail(t, "hangs")
	}
}

// Conformance case 235.
func TestLoad_UnreadableFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	write(t, path, body(1))
	require.NoError(t, os.Chmod(path, 0))
	done := make(chan error, 1)
	go func() {
		// Nothing is unreadable for root, so this thread becomes somebody else. It ends with
		// the goroutine, which never unlocks it.
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0))
			if errno != 0 {
				done <- errno
				return
			}
		}
		_, err := Load(path)
		done <- err
	}()
	require.EqualError(t, <-done, path+": may not be read: change its permissions or the user")
}

// Conformance case 237. It does not run beside others, because it counts what the process has.
func TestWatch_StormLeavesResourcesAsTheyWere(t *testing.T) {
	r := start(t, filepath.Join(t.TempDir(), "config.toml"))
	g0, d0, w0 := resources(t)
	for i := range 500 {
		if i%4 < 2 {
			write(t, r.path+".tmp", body(2+i%2))
			require.NoError(t, os.Rename(r.path+".tmp", r.path))
		} else {
			write(t, r.path, body(2+i%2))
		}
		if i%100 == 0 {
			g, d, w := resources(t)
			require.LessOrEqual(t, g, g0+1, "goroutines") // the reader of events may be about to
			require.LessOrEqual(t, d, d0+1, "descriptors")
			require.Equal(t, w0, w, "watches")
		}
	}
	write(t, r.path, body(9))
	for last := (seen{}); last.threshold != 9; {
		select {
		case last = <-r.seen:
		case <-time.After(patience):
			require.Fail(t, "the last write is not seen")
		}
	}
	settles(t, g0, d0, w0)
}
