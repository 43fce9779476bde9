package netloop_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// starve serves echoes with hardly any descriptors, and prints what the hooks are told.
func starve(engine string) {
	limit := unix.Rlimit{Cur: 40, Max: 40}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
	o := netloop.Options{
		Loops:         2,
		AcceptPaused:  func(err error) { fmt.Println("paused:", err) },
		AcceptResumed: func() { fmt.Println("resumed") },
	}
	var e netloop.Engine = netloop.Goroutines(o)
	if engine == "loops" {
		var err error
		if e, err = netloop.Loops(o); err != nil {
			panic(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go e.Serve(l, echo)
	fmt.Println(l.Addr())
	io.Copy(io.Discard, os.Stdin)
	e.Close()
}

// cpu is the processor time that a process has used.
func cpu(t *testing.T, p *os.Process) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
	require.NoError(t, err)
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):]))
	user, err := strconv.Atoi(f[12])
	require.NoError(t, err)
	system, err := strconv.Atoi(f[13])
	require.NoError(t, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func TestAccept_PausesWithoutDescriptorsAndGoesOn(t *testing.T) {
	for name := range engines(t, netloop.Options{}) {
		t.Run(name, func(t *testing.T) {
			out, process := startChild(t, "starve "+name)
			require.True(t, out.Scan())
			addr := out.Text()

			var conns []net.Conn
			for range 80 {
				conns = append(conns, dial(t, addr)) // some only as far as the backlog
			}
			require.True(t, out.Scan())
			require.Contains(t, out.Text(), "paused: ")
			require.Contains(t, out.Text(), syscall.EMFILE.Error())
			roundTrip(t, conns[0], "those who are in are served")

			before := cpu(t, process)
			<-time.After(500 * time.Millisecond)
			require.Less(t, cpu(t, process)-before, 100*time.Millisecond, "it spins")

			for _, c := range conns[1:60] {
				c.Close()
			}
			require.True(t, out.Scan())
			require.Equal(t, "resumed", out.Text())
			for _, c := range conns[60:] {
				roundTrip(t, c, "those who have waited are served")
			}
			roundTrip(t, dial(t, addr), "and new ones")
			for range 80 {
				dial(t, addr)
			}
			require.True(t, out.Scan())
			require.Contains(t, out.Text(), "paused: ", "each shortage is told once")
		})
	}
}

func TestAccept_SocketsAreNotDelayedAndKeptAlive(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		s, _ := pair(t, e)
		c, _ := dialled(t, s.ex)
		for _, c := range []netloop.Conn{s.conn, c} {
			plain := receive(t, result(s.ex, func() net.Conn { c, err := c.Detach(); assert.NoError(t, err); return c }), "Detach")
			defer plain.Close()
			raw, err := plain.(*net.TCPConn).SyscallConn()
			require.NoError(t, err)
			require.NoError(t, raw.Control(func(fd uintptr) {
				for opt, want := range map[[2]int]int{
					{unix.IPPROTO_TCP, unix.TCP_NODELAY}:  1,
					{unix.SOL_SOCKET, unix.SO_KEEPALIVE}:  1,
					{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}: 15,
				} {
					got, err := unix.GetsockoptInt(int(fd), opt[0], opt[1])
					assert.NoError(t, err)
					assert.Equal(t, want, got, opt)
				}
			}))
		}
	})
}
