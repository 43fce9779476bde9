package engine

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestReceive_TellsWhenTheBytesCameNotWhenTheyWereRead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	target, err := (&Plan{}).newTarget(t.Context(), 0, plan("http://" + l.Addr().String() + "/").Targets[0])
	require.NoError(t, err)
	fd, _, err := dial(target.addr)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd) }()
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()

	r, buffer := receiver{}, make([]byte, 64)
	_, _, errno := r.receive(fd, buffer)
	require.Equal(t, syscall.EAGAIN, errno)

	// The kernel begins to stamp a moment after the first socket has asked for it.
	var before, written, arrived time.Time
	require.Eventually(t, func() bool {
		before = time.Now()
		_, err = io.WriteString(c, "hello")
		written = time.Now()
		pauseFor(50 * time.Millisecond)
		n, stamp, errno := r.receive(fd, buffer)
		arrived = time.Unix(0, stamp)
		return err == nil && errno == 0 && string(buffer[:n]) == "hello" && stamp != 0
	}, 10*time.Second, time.Millisecond)
	require.False(t, arrived.Before(before.Add(-time.Millisecond)), "%v before it was sent", before.Sub(arrived))
	require.True(t, arrived.Before(written.Add(40*time.Millisecond)), "%v after it was sent", arrived.Sub(written))

	require.NoError(t, c.Close())
	require.Eventually(t, func() bool {
		n, _, errno := r.receive(fd, buffer)
		return n == 0 && errno == 0
	}, 5*time.Second, time.Millisecond, "the end of the stream")
}

// At a high rate a loop looks at answers when it sends the next request. What it reports must be the
// target's time, not that of its own late look.
func TestLoop_ALateLookDoesNotLengthenWhatIsMeasured(t *testing.T) {
	s := serve(t, respond(okAnswer))
	p := plan(s.url())
	p.Executor, p.Loops, p.Rate, p.Connections = Loops, 1, 2500, 50 // 400 us apart: lazy
	best := int64(1 << 62)
	for range 8 { // a busy machine is slower, never faster
		report := run(t, p)
		require.EqualValues(t, report.Planned, report.Total.Classes["ok"])
		if best = min(best, report.Total.Service.P50US); best < 300 {
			return
		}
	}
	require.Less(t, best, int64(300), "service p50 in us; a look every 400 us would see at least that")
}

func TestRing_KeepsItsOrder(t *testing.T) {
	a, b, c := &conn{index: 1}, &conn{index: 2}, &conn{index: 3}
	r := ring{items: make([]*conn, 3)}
	require.Nil(t, r.pop())
	r.push(a)
	require.Same(t, a, r.pop())
	r.push(a)
	r.push(b)
	r.push(c)
	r.remove(b)
	require.Same(t, a, r.pop())
	require.Same(t, c, r.pop())
	require.Nil(t, r.pop())
}
