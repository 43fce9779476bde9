package netloop_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// scaled returns an engine of event loops, the number of which a test decides; nil where there are none.
func scaled(t *testing.T, loops int) (e netloop.Engine, work func(int)) {
	e = engines(t, netloop.Options{Loops: loops})["loops"]
	if e == nil {
		return nil, nil
	}
	return e, e.(interface{ Work(int) }).Work
}

// forEachScaled is scaled in plain text and over TLS.
func forEachScaled(t *testing.T, loops int, body func(t *testing.T, e netloop.Engine, work func(int))) {
	t.Helper()
	for name, e := range transports(t, netloop.Options{Loops: loops}) {
		of := e
		if over, ok := e.(overTLS); ok {
			of = over.Engine
		}
		if s, ok := of.(interface{ Work(int) }); ok {
			t.Run(name, func(t *testing.T) { body(t, e, s.Work) })
		}
	}
}

// movingEcho echoes byte by byte, and goes on where Rebalance says. It tells where it was for each.
func movingEcho(at chan<- int) func(netloop.Executor, netloop.Conn) {
	var serve func(ex netloop.Executor, c netloop.Conn)
	serve = func(ex netloop.Executor, c netloop.Conn) {
		b := make([]byte, 1)
		for {
			if n, err := c.Read(b); n == 0 || err != nil {
				c.Close()
				return
			}
			if at != nil {
				at <- ex.Index()
			}
			if _, err := c.Write(b); err != nil {
				c.Close()
				return
			}
			if to := ex.Rebalance(); to != nil {
				c.MoveTo(to, serve)
				return
			}
		}
	}
	return serve
}

// answersByLoop has every connection answer and counts them by loop.
func answersByLoop(t *testing.T, conns []*peer, at <-chan int) map[int]int {
	t.Helper()
	n := make(map[int]int)
	for _, c := range conns {
		roundTrip(t, c, "x")
		n[receive(t, at, "an answer")]++
	}
	return n
}

func TestRebalance_SpreadsConnectionsOverTheActiveLoops(t *testing.T) {
	forEachScaled(t, 3, func(t *testing.T, e netloop.Engine, work func(int)) {
		work(1)
		at := make(chan int, 1)
		addr := serve(t, e, movingEcho(at))
		var conns []*peer
		for range 12 {
			conns = append(conns, dial(t, addr))
		}
		require.Equal(t, map[int]int{1: 12}, answersByLoop(t, conns, at))
		work(3)
		answersByLoop(t, conns, at) // each moves after its answer
		require.Equal(t, map[int]int{1: 4, 2: 4, 3: 4}, answersByLoop(t, conns, at))
		require.Equal(t, map[int]int{1: 4, 2: 4, 3: 4}, answersByLoop(t, conns, at), "and stays")
		work(2)
		for range 3 {
			conns = append(conns, dial(t, addr))
		}
		answersByLoop(t, conns, at)
		n := answersByLoop(t, conns, at)
		require.Empty(t, n[3])
		require.InDelta(t, n[1], n[2], 1)
		work(1)
		answersByLoop(t, conns, at)
		require.Equal(t, map[int]int{1: 15}, answersByLoop(t, conns, at))
	})
}

func TestRebalance_FollowsTheLoad(t *testing.T) {
	e, _ := scaled(t, 2)
	if e == nil {
		return
	}
	at := make(chan int, 1)
	addr := serve(t, e, movingEcho(at))
	conns := []*peer{dial(t, addr), dial(t, addr)}
	require.Equal(t, map[int]int{1: 2}, answersByLoop(t, conns, at))

	busy, stop := make(chan side, 1), atomic.Bool{}
	addr2 := serve(t, e, func(ex netloop.Executor, c netloop.Conn) { busy <- side{ex, c} })
	dial(t, addr2)
	s := receive(t, busy, "a connection")
	s.ex.Post(func() {
		for !stop.Load() {
			end := time.Now().Add(100 * time.Microsecond)
			for time.Now().Before(end) {
			}
			event := s.ex.NewEvent()
			s.ex.Go(event.Set)
			event.Wait()
		}
	})
	eventually(t, "one goes to the other loop", func() bool { return answersByLoop(t, conns, at)[2] > 0 })
	stop.Store(true)
	eventually(t, "both come back", func() bool { return answersByLoop(t, conns, at)[1] == 2 })
}

func TestMoveTo_TakesAlongWhatWasNotRead(t *testing.T) {
	forEachScaled(t, 2, func(t *testing.T, e netloop.Engine, work func(int)) {
		work(1)
		at := make(chan int, 8)
		addr := serve(t, e, movingEcho(at))
		c := dial(t, addr)
		_, err := io.WriteString(c, "abc")
		require.NoError(t, err)
		require.NoError(t, c.CloseWrite())
		for range 20 { // on its way or not, moved or not: all of it comes back, and then the end
			work(2)
			work(1)
		}
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, "abc", string(got))
	})
}

func TestMoveTo_LosesNothingHoweverOftenTheLoadChanges(t *testing.T) {
	fds := descriptors()
	e, work := scaled(t, 3)
	if e == nil {
		return
	}
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- e.Serve(l, movingEcho(nil)) }()
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				work(n%3 + 1)
			}
		}
	})
	var clients sync.WaitGroup
	for i := range 32 {
		clients.Go(func() {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(patience))
			for j := range 200 {
				message := fmt.Sprintf("%d of %d", j, i) // several moves a message
				b := make([]byte, len(message))
				io.WriteString(c, message)
				if _, err := io.ReadFull(c, b); err != nil || string(b) != message {
					t.Errorf("%q came back as %q: %v", message, b, err)
					return
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	running.Wait()
	l.Close()
	require.NoError(t, receive(t, served, "the end of Serve"))
	require.NoError(t, e.Close())
	eventually(t, "every descriptor is given back", func() bool { return descriptors() <= fds })
}

func TestMoveTo_AnEngineThatClosesEndsWhatIsOnItsWay(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	for range 20 {
		fds := descriptors()
		e, work := scaled(t, 2)
		addr := serve(t, e, movingEcho(nil))
		var clients sync.WaitGroup
		for range 8 {
			c := dial(t, addr)
			clients.Go(func() {
				defer c.Close()
				for b := make([]byte, 1); ; {
					if _, err := c.Write(b); err != nil {
						return
					}
					if _, err := c.Read(b); err != nil {
						if isTimeout(err) {
							t.Error("a connection was forgotten")
						}
						return
					}
				}
			})
		}
		for n := range 20 {
			work(n%2 + 1)
			<-time.After(100 * time.Microsecond)
		}
		require.NoError(t, e.Close())
		clients.Wait()
		eventually(t, "every descriptor is given back", func() bool { return descriptors() <= fds+1 }) // the listener is open
	}
}
