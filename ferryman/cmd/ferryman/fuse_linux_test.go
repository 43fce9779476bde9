package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Of the protocol between the kernel and a file system of FUSE (linux/fuse.h), what reading files takes.
const (
	fuseLookup  = 1
	fuseForget  = 2
	fuseGetattr = 3
	fuseOpen    = 14
	fuseRead    = 15
	fuseRelease = 18
	fuseInit    = 26
	fuseOpendir = 27
	fuseReldir  = 29
	fuseIntr    = 36
	fuseForgets = 42
)

// fuse is a file system with some files that stops to answer when it is told to.
type fuse struct {
	t     *testing.T
	dir   string
	fd    int
	hangs atomic.Bool
	after atomic.Uint32 // hangs once it has answered this, too
	ready chan struct{} // closed once the kernel has introduced itself
	ended chan struct{}

	mu    sync.Mutex // guards files
	names []string   // the node of a file is its index and 2
	files map[string]string
}

// mountFuse needs root.
func mountFuse(t *testing.T, files map[string]string) *fuse {
	t.Helper()
	f := &fuse{t: t, dir: t.TempDir(), files: files, ready: make(chan struct{}), ended: make(chan struct{})}
	for name := range files {
		f.names = append(f.names, name)
	}
	var err error
	f.fd, err = unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	require.NoError(t, err, "these tests need FUSE in the kernel, and /dev/fuse")
	data := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", f.fd)
	require.NoError(t, unix.Mount("ferryman-test", f.dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, data), "these tests mount a file system")
	stop := make(chan struct{})
	go f.serve(stop)
	t.Cleanup(func() {
		_ = unix.Unmount(f.dir, unix.MNT_FORCE|unix.MNT_DETACH)
		close(stop)
		<-f.ended
		unix.Close(f.fd) // whoever waits gets an error now
	})
	<-f.ready
	return f
}

// put gives a file another content.
func (f *fuse) put(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files[name] = text
}

// hang stops the answers until resume: at once, or after the next answer to a certain request. A request that
// is not even read can be killed, one that was read cannot.
func (f *fuse) hang(after uint32) {
	f.t.Helper()
	poll(f.t, 10*time.Second, "what was asked before is answered", func() bool { return !f.asked(0) })
	f.after.Store(after)
	f.hangs.Store(after == 0)
}

func (f *fuse) resume() {
	f.after.Store(0)
	f.hangs.Store(false)
}

// untilHeld waits until somebody waits for an answer that does not come.
func (f *fuse) untilHeld() {
	f.t.Helper()
	poll(f.t, 10*time.Second, "a look at a file that hangs", func() bool { return f.hangs.Load() && f.asked(0) })
}

// asked reports whether there is a request to read.
func (f *fuse) asked(wait int) bool {
	fds := []unix.PollFd{{Fd: int32(f.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, wait)
	return n == 1 && err == nil && fds[0].Revents&unix.POLLIN != 0
}

func (f *fuse) serve(stop <-chan struct{}) {
	defer close(f.ended)
	buf := make([]byte, 1<<20)
	for {
		select {
		case <-stop:
			return
		default:
		}
		if f.hangs.Load() {
			<-time.After(time.Millisecond)
			continue
		}
		if !f.asked(5) || f.hangs.Load() {
			continue
		}
		n, err := unix.Read(f.fd, buf)
		if err != nil {
			continue // it was interrupted meanwhile, or all is over
		}
		op := binary.NativeEndian.Uint32(buf[4:])
		f.answer(op, buf[:n])
		if op == f.after.Load() && op != 0 {
			f.hangs.Store(true)
		}
	}
}

// answer obeys a request: a head of 40 bytes and what belongs to it.
func (f *fuse) answer(op uint32, request []byte) {
	unique, node := binary.NativeEndian.Uint64(request[8:]), binary.NativeEndian.Uint64(request[16:])
	body := request[40:]
	f.mu.Lock()
	defer f.mu.Unlock()
	var out bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			require.NoError(f.t, binary.Write(&out, binary.NativeEndian, v))
		}
	}
	errno := unix.Errno(0)
	switch op {
	case fuseForget, fuseForgets, fuseIntr:
		return
	case fuseInit:
		put(uint32(7), uint32(31), uint32(0), uint32(0), uint16(12), uint16(9), uint32(64<<10), uint32(1), make([]byte, 36))
		close(f.ready)
	case fuseLookup:
		errno = unix.ENOENT
		for i, name := range f.names {
			if name+"\x00" == string(body) {
				errno = 0
				put(uint64(i+2), uint64(0), uint64(0), uint64(0), uint64(0)) // valid for no time
				f.attributes(put, uint64(i+2))
			}
		}
	case fuseGetattr:
		put(uint64(0), uint64(0))
		f.attributes(put, node)
	case fuseOpen, fuseOpendir:
		put(node, uint32(1), uint32(0)) // no cache
	case fuseRead:
		text := f.files[f.names[node-2]]
		from := min(binary.NativeEndian.Uint64(body[8:]), uint64(len(text)))
		to := min(from+uint64(binary.NativeEndian.Uint32(body[16:])), uint64(len(text)))
		put([]byte(text[from:to]))
	case fuseRelease, fuseReldir:
	default:
		errno = unix.ENOSYS
	}
	if errno != 0 {
		out.Reset()
	}
	head := make([]byte, 16, 16+out.Len())
	binary.NativeEndian.PutUint32(head, uint32(16+out.Len()))
	binary.NativeEndian.PutUint32(head[4:], uint32(-int32(errno)))
	binary.NativeEndian.PutUint64(head[8:], unique)
	_, _ = unix.Write(f.fd, append(head, out.Bytes()...)) // who asked may be gone
}

// attributes are those of the directory, or of a file.
func (f *fuse) attributes(put func(...any), node uint64) {
	size, mode := 0, uint32(unix.S_IFDIR|0o755)
	if node > 1 {
		size, mode = len(f.files[f.names[node-2]]), unix.S_IFREG|0o644
	}
	put(node, uint64(size), uint64(0), make([]byte, 36), mode, uint32(1), make([]byte, 20))
}

// requireRoot says how to run what needs it.
func requireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this test mounts a file system: run it as root, as CI does")
	}
}
