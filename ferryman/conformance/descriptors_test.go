package conformance

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman"
	"github.com/Bunty9/ferryman/ferryman/config"
)

// A limit on descriptors is one of a whole process: the proxy of this case runs in a child, which is
// this test binary again.
const childVariable = "FERRYMAN_CONFORMANCE_CHILD"

// child serves as "engine upstream limit" says until its standard input ends.
func child(spec string) error {
	if spec[0] == '{' {
		return serveAs(spec)
	}
	var engine, up string
	var limit int
	if _, err := fmt.Sscan(spec, &engine, &up, &limit); err != nil {
		return err
	}
	c := config.Default()
	c.HealthInterval = time.Hour
	c.Routes = []config.Route{{Prefix: "/", Upstream: up}}
	p, err := ferryman.New(c, ferryman.Options{Engine: engine, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ln) }()
	fmt.Println(ln.Addr())
	if err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(limit), Max: uint64(limit)}); err != nil {
		return err
	}
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	if err = p.Close(); err != nil {
		return err
	}
	return <-ended
}

func TestCase262_OutOfDescriptors(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		u := newUpstream(t, "U")
		t.Cleanup(u.close)
		const limit = 40
		log := &logSink{}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", childVariable, m.engine, u.addr, limit))
		cmd.Stderr = log
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		var once sync.Once
		end := func() error {
			var err error
			once.Do(func() { in.Close(); err = cmd.Wait() })
			return err
		}
		t.Cleanup(func() { _ = end() })
		addr, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err, "%s", log.text())
		r := &rig{t: t, mode: m, addr: strings.TrimSpace(addr)}

		first := r.dial(t)
		require.Equal(t, 200, first.do(t, request{}).status)
		var rest []*client
		for range 2 * limit {
			rest = append(rest, r.dial(t)) // the kernel takes them
		}
		eventually(t, func() bool { return log.count("level=ERROR") > 0 }, "nothing is logged")
		for range 20 {
			resp := first.do(t, request{})
			require.Contains(t, []int{200, 503}, resp.status, "those that are there work on, as far as no dial is needed")
		}
		require.Equal(t, 1, log.count("level=ERROR"), "one line, not one for each attempt:\n%s", log.text())
		for _, c := range rest {
			c.close()
		}
		eventually(t, func() bool {
			c, err := r.tryDial(clientTLS, 0)
			if err != nil {
				return false
			}
			defer c.close()
			c.send(request{}.String())
			resp, err := c.response("GET")
			return err == nil && resp.status == 200
		}, "accepting does not recover\n%s", log.text())
		first.close()
		require.NoError(t, end(), "%s", log.text())
		log.noPanic(t)
		// While the queue of those that have left is worked off, trouble may end and begin again.
		require.LessOrEqual(t, log.count("level="), 20, "%s", log.text())
	}, plainModes()...)
}
