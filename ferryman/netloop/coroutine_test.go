package netloop_test

import (
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

func TestEvent_SetAndWaitInEitherOrder(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		s, _ := pair(t, e)
		on(t, s.ex, func() {
			g := s.ex.NewEvent()
			g.Set()
			g.Set()
			g.Wait()
			g.Wait()
		})
		var g netloop.Event
		on(t, s.ex, func() { g = s.ex.NewEvent() })
		passed := result(s.ex, func() bool { g.Wait(); return true })
		on(t, s.ex, func() {})
		require.Empty(t, passed)
		on(t, s.ex, func() { g.Set(); g.Set() })
		receive(t, passed, "the event")
	})
}

func TestGo_StartsManyCoroutinesThatWaitForEachOther(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		s, _ := pair(t, e)
		for range 3 { // the second time with coroutines that have been used
			on(t, s.ex, func() {
				last := s.ex.NewEvent()
				last.Set()
				for range 500 {
					before, mine := last, s.ex.NewEvent()
					s.ex.Go(func() {
						before.Wait()
						mine.Set()
					})
					last = mine
				}
				last.Wait()
			})
		}
	})
}

func TestGo_StaysOnItsExecutor(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		s, _ := pair(t, e)
		n := 0 // no lock on a loop: the race detector would tell
		on(t, s.ex, func() {
			done := s.ex.NewEvent()
			want := s.ex.Index()
			s.ex.Go(func() {
				assert.Equal(t, want, s.ex.Index())
				n++
				done.Set()
			})
			done.Wait()
			n++
		})
		require.Equal(t, 2, n)
		require.Less(t, s.ex.Index(), e.Executors())
	})
}

func TestPost_ReachesAnExecutorFromEverywhere(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		s, _ := pair(t, e)
		const n = 2000
		got := make(chan int, n)
		for i := range 4 {
			go func() {
				for j := range n / 4 {
					s.ex.Post(func() { got <- i*n/4 + j })
				}
			}()
		}
		seen := make(map[int]bool)
		for range n {
			seen[receive(t, got, "a posted coroutine")] = true
		}
		require.Len(t, seen, n)
		require.NoError(t, e.Close())
		s.ex.Post(func() { t.Error("posted to a closed engine, and run") })
	})
}

func TestPost_ReachesTheCoroutineThatCloseWaitsFor(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		s, _ := pair(t, e)
		waiting, closed := make(chan netloop.Event, 1), make(chan error, 1)
		s.ex.Post(func() {
			over := s.ex.NewEvent()
			waiting <- over
			over.Wait()
		})
		over := receive(t, waiting, "a coroutine")
		go func() { closed <- e.Close() }()
		ended := result(s.ex, func() error { return s.conn.Await() })
		require.ErrorIs(t, receive(t, ended, "the end of the connection"), net.ErrClosed)
		s.ex.Post(over.Set)
		require.NoError(t, receive(t, closed, "Close"))
	})
}

func TestNow_IsFresh(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		now := result(s.ex, func() time.Time { s.conn.Await(); return s.ex.Now() })
		<-time.After(50 * time.Millisecond)
		sent := time.Now()
		client.Write([]byte("x"))
		require.False(t, receive(t, now, "Await").Before(sent), "it is of this iteration")
	})
}

func TestPanic_ClosesItsConnectionAndNothingElse(t *testing.T) {
	type report struct {
		value any
		stack string
	}
	ends := map[string]func(){
		"panic":  func() { panic("at the ferry") },
		"nil":    func() { var p *int; *p = 1 }, //nolint:govet // a nil pointer's panic is the point //nolint:govet // the panic of a nil pointer is the point
		"goexit": runtime.Goexit,
	}
	reports := make(chan report, 10)
	o := netloop.Options{Loops: 1, Panicked: func(v any, stack []byte) { reports <- report{v, string(stack)} }}
	for name, e := range transports(t, o) {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
				b := make([]byte, 16)
				n, err := c.Read(b)
				assert.NoError(t, err)
				if end := ends[string(b[:n])]; end != nil {
					end()
				}
				c.Write(b[:n])
				echo(ex, c)
			})
			bystander := dial(t, addr)
			roundTrip(t, bystander, "hello")
			for word := range ends {
				c := dial(t, addr)
				c.Write([]byte(word))
				got, err := io.ReadAll(c)
				require.NoError(t, err)
				require.Empty(t, got)
				if word != "goexit" {
					r := receive(t, reports, "the report")
					require.NotNil(t, r.value)
					require.Contains(t, r.stack, "TestPanic_ClosesItsConnectionAndNothingElse")
				}
				roundTrip(t, bystander, "still here")
				roundTrip(t, dial(t, addr), "and others too")
			}
			require.Empty(t, reports)
		})
	}
}

func TestPanic_InACoroutineOfItsOwnIsContained(t *testing.T) {
	var panics atomic.Int32
	o := netloop.Options{Loops: 1, Panicked: func(any, []byte) { panics.Add(1) }}
	for name, e := range engines(t, o) {
		t.Run(name, func(t *testing.T) {
			panics.Store(0)
			addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
				for range 10 {
					ex.Go(func() { panic("side coroutine") })
				}
				echo(ex, c)
			})
			roundTrip(t, dial(t, addr), "hello")
			eventually(t, "ten reports", func() bool { return panics.Load() == 10 })
			roundTrip(t, dial(t, addr), "hello")
		})
	}
}

func TestPanic_IsWhatASecondReaderGetsOnALoop(t *testing.T) {
	told := make(chan any, 1)
	e := engines(t, netloop.Options{Loops: 1, Panicked: func(v any, _ []byte) { told <- v }})["loops"]
	if e == nil {
		return
	}
	s, client := pair(t, e)
	first := result(s.ex, s.conn.Await)
	s.ex.Post(func() { s.conn.Await() })
	require.Contains(t, receive(t, told, "the panic"), "two coroutines")
	client.Write([]byte("x"))
	require.NoError(t, receive(t, first, "the first one"))
}

func TestPanic_WithoutAHookIsContained(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		addr := serve(t, e, func(netloop.Executor, netloop.Conn) { panic("unheard") })
		got, err := io.ReadAll(dial(t, addr))
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

// A coroutine that never has to wait must not keep the others of its loop waiting.
func TestFairness_ACoroutineThatNeverBlocksLetsOthersRun(t *testing.T) {
	// One byte at a time: the other side is always ahead.
	busy := map[string]func(netloop.Conn, []byte) (int, error){
		"reading": netloop.Conn.Read,
		"writing": netloop.Conn.Write,
	}
	for name := range engines(t, netloop.Options{}) {
		for what, call := range busy {
			t.Run(name+" "+what, func(t *testing.T) {
				e := engines(t, netloop.Options{Loops: 1})[name]
				var count atomic.Int64
				var stop atomic.Bool
				addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
					b := make([]byte, 1)
					if c.Read(b); b[0] == 'e' {
						c.Write(b)
						echo(ex, c)
						return
					}
					defer c.Close()
					for !stop.Load() {
						if _, err := call(c, b); err != nil {
							return
						}
						count.Add(1)
					}
				})
				defer stop.Store(true)
				small, big := dial(t, addr), dial(t, addr)
				roundTrip(t, small, "e")
				go func() {
					for b := make([]byte, 1<<20); ; {
						if _, err := big.Write(b); err != nil {
							return
						}
					}
				}()
				go io.Copy(io.Discard, big)
				for range 50 {
					before := count.Load()
					roundTrip(t, small, "hello")
					eventually(t, "the busy coroutine gets on, too", func() bool { return count.Load() > before })
				}
			})
		}
	}
}

// Work that moves no bytes counts as well, once it is told of.
func TestFairness_ACoroutineThatSpendsLetsOthersRun(t *testing.T) {
	e := engines(t, netloop.Options{Loops: 1})["loops"]
	if e == nil {
		return // the runtime preempts goroutines
	}
	s, _ := pair(t, e)
	const worth = 60 << 10
	runs := 0 // of the other coroutine
	on(t, s.ex, func() {
		over, ended := false, s.ex.NewEvent()
		var other func()
		other = func() {
			if runs++; over {
				ended.Set()
				return
			}
			s.ex.Go(other)
		}
		s.ex.Go(other)
		for range 100 {
			s.ex.Spend(worth)
		}
		over = true
		ended.Wait()
	})
	require.Greater(t, runs, 30, "others ran")
	require.Less(t, runs, 60, "and not after each bit of work")
}

func TestServe_SpreadsConnectionsEvenlyOverTheActiveLoops(t *testing.T) {
	e, work := scaled(t, 3)
	if e == nil {
		return // one executor, nothing to spread
	}
	work(3)
	conns := make(chan side, 1)
	addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) { conns <- side{ex, c} })
	per := make(map[int][]side)
	open := func(n int) {
		for range n {
			dial(t, addr)
			s := receive(t, conns, "a connection")
			per[s.ex.Index()] = append(per[s.ex.Index()], s)
		}
	}
	open(30)
	for i := 1; i <= 3; i++ {
		require.Len(t, per[i], 10)
	}
	for _, s := range per[2] {
		on(t, s.ex, func() { s.conn.Close() })
	}
	per[2] = nil
	open(10)
	require.Len(t, per[2], 10, "they go where others have left")
}

func TestServe_EndsWhenItsListenerCloses(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		var ended []chan error
		var ls []net.Listener
		for range 3 {
			l, ch := listen(t), make(chan error, 1)
			go func() { ch <- e.Serve(l, echo) }()
			ls, ended = append(ls, l), append(ended, ch)
		}
		kept := dial(t, ls[0].Addr().String())
		roundTrip(t, kept, "hello")
		for i, l := range ls {
			l.Close()
			require.NoError(t, receive(t, ended[i], "the end of Serve"))
			_, err := net.Dial("tcp", l.Addr().String())
			require.Error(t, err)
		}
		roundTrip(t, kept, "a served connection outlives its listener")
		l := listen(t)
		go e.Serve(l, echo)
		roundTrip(t, dial(t, l.Addr().String()), "hello")
	})
}

func TestServe_RefusesOnAClosedEngine(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		require.NoError(t, e.Close())
		require.NoError(t, e.Close())
		l := listen(t)
		require.NoError(t, e.Serve(l, echo))
		_, err := net.Dial("tcp", l.Addr().String())
		require.Error(t, err, "nobody would ever answer")
	})
}

func TestServe_OfAForeignListenerIsAnErrorOnLoops(t *testing.T) {
	e := engines(t, netloop.Options{})["loops"]
	if e == nil {
		return
	}
	l := listen(t)
	err := e.Serve(struct{ net.Listener }{l}, echo)
	require.ErrorContains(t, err, "not a *net.TCPListener")
	require.False(t, strings.Contains(err.Error(), "\n"))
}
