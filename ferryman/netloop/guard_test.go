package netloop_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

func TestAbort_EndsWhatWaitsAndWhatComesLater(t *testing.T) {
	forEachWait(t, func(t *testing.T, s side, wait func() error, _ func(time.Time) error) {
		ended := result(s.ex, wait)
		on(t, s.ex, func() {}) // it waits by now, or has not begun: both must end
		go s.conn.Abort()
		assertClosed(t, receive(t, ended, "the end"))
		s.conn.Abort()
		on(t, s.ex, func() {
			s.conn.SetDeadline(time.Now().Add(time.Minute))
			assertClosed(t, s.conn.Await())
			_, err := s.conn.Read(make([]byte, 1))
			assertClosed(t, err)
			_, err = s.conn.Write(make([]byte, 1))
			assertClosed(t, err)
			assert.False(t, s.conn.Quiet())
			assert.False(t, s.conn.SeemsQuiet())
			assert.NoError(t, s.conn.Close())
		})
	})
}

func TestAbort_FromManyGoroutinesWhileTheConnectionCloses(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		conns := make(chan netloop.Conn, 300)
		addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
			conns <- c
			echo(ex, c)
		})
		for i := range cap(conns) {
			c := dial(t, addr)
			victim := receive(t, conns, "a connection")
			go victim.Abort()
			if i%2 == 0 {
				c.Close()
			}
			go victim.Abort()
			if i%2 == 1 {
				n, _ := io.Copy(io.Discard, c)
				require.Zero(t, n)
			}
		}
	})
}

// guarded is a connection, its client, and a victim with what it is connected to.
type guarded struct {
	side
	client *peer
	victim netloop.Conn
}

func guard(t *testing.T, e netloop.Engine) guarded {
	s, client := pair(t, e)
	victim, _ := dialled(t, s.ex)
	return guarded{s, client, victim}
}

// fallen has a coroutine wait for the victim's end.
func (g guarded) fallen() <-chan error {
	return result(g.ex, func() error { _, err := g.victim.Read(make([]byte, 1)); return err })
}

func TestGuard_FiresHoweverThePeerGoes(t *testing.T) {
	ways := map[string]func(t testing.TB, c *peer){
		"FIN":                func(t testing.TB, c *peer) { c.CloseWrite() },
		"RST":                reset,
		"bytes, then FIN":    func(t testing.TB, c *peer) { c.Write([]byte("next")); c.CloseWrite() },
		"bytes, then RST":    func(t testing.TB, c *peer) { c.Write([]byte("next")); reset(t, c) },
		"unread, then close": func(t testing.TB, c *peer) { c.Close() },
	}
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		best := patience
		for name, leave := range ways {
			for _, order := range []string{"before", "after", "while"} {
				t.Run(name+" "+order, func(t *testing.T) {
					g := guard(t, sameEngine{e})
					fallen := g.fallen()
					if order == "before" {
						leave(t, g.client)
						eventually(t, "the peer is gone", func() bool { return <-result(g.ex, g.conn.Gone) })
					}
					if order == "while" {
						go leave(t, g.client)
					}
					on(t, g.ex, func() { g.conn.Guard(g.victim) })
					start := time.Now()
					if order == "after" {
						leave(t, g.client)
					}
					assertClosed(t, receive(t, fallen, "the victim"))
					best = min(best, time.Since(start))
					require.True(t, <-result(g.ex, g.conn.Gone))
				})
			}
		}
		require.Less(t, best, 100*time.Millisecond)
	})
}

// sameEngine is not closed by the helpers.
type sameEngine struct{ netloop.Engine }

func (sameEngine) Close() error { return nil }

func TestGuard_ThatHasEndedNeverFires(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		g := guard(t, e)
		fallen := g.fallen()
		other, _ := dialled(t, g.ex)
		on(t, g.ex, func() {
			g.conn.Guard(g.victim)
			g.conn.Guard(other) // one at a time
			g.conn.Guard(nil)
		})
		g.client.CloseWrite()
		eventually(t, "the peer is gone", func() bool { return <-result(g.ex, g.conn.Gone) })
		select {
		case err := <-fallen:
			t.Fatalf("the victim of a guard that has ended: %v", err)
		case <-time.After(150 * time.Millisecond):
		}
		require.True(t, <-result(g.ex, other.Quiet))
		g.victim.Abort()
		assertClosed(t, receive(t, fallen, "the victim"))
	})
}

func TestGuardReset_FiresWithAResetOnly(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		for _, late := range []bool{false, true} {
			g := guard(t, sameEngine{e})
			set := func() { g.conn.GuardReset(g.victim) }
			if !late {
				on(t, g.ex, set)
			}
			fallen := g.fallen()
			g.client.Write([]byte("next"))
			g.client.CloseWrite()
			eventually(t, "the peer has ended its side", func() bool { return <-result(g.ex, g.conn.Gone) })
			if late {
				on(t, g.ex, set)
			}
			select {
			case err := <-fallen:
				t.Fatalf("the victim of an end of stream: %v", err)
			case <-time.After(150 * time.Millisecond):
			}
			reset(t, g.client)
			assertClosed(t, receive(t, fallen, "the victim"))

			g = guard(t, sameEngine{e})
			reset(t, g.client)
			eventually(t, "the peer is gone", func() bool { return <-result(g.ex, g.conn.Gone) })
			fallen = g.fallen()
			on(t, g.ex, func() { g.conn.GuardReset(g.victim) })
			assertClosed(t, receive(t, fallen, "the victim"))
		}
	})
}

// waker is a victim that is no connection.
type waker struct{ netloop.Event }

func (w waker) Abort() { w.Set() }

func TestGuard_WakesACoroutineThatWaitsForAnEvent(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		woken := result(s.ex, func() bool {
			w := waker{s.ex.NewEvent()}
			s.conn.Guard(w)
			w.Wait()
			return true
		})
		client.Close()
		receive(t, woken, "the coroutine")
	})
}

func TestGuard_EndsWithItsConnection(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		g := guard(t, e)
		on(t, g.ex, func() {
			g.conn.Guard(g.victim)
			g.conn.Close()
		})
		g.client.Close()
		require.Never(t, func() bool { return !<-result(g.ex, g.victim.Quiet) }, 120*time.Millisecond, 20*time.Millisecond)
	})
}

func TestGuard_TakesAVictimOfAnotherEngine(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		other := netloop.Goroutines(netloop.Options{})
		defer other.Close()
		s, client := pair(t, e)
		victim, _ := dialled(t, other)
		on(t, s.ex, func() { s.conn.Guard(victim) })
		fallen := result[error](other, victim.Await)
		client.Close()
		assertClosed(t, receive(t, fallen, "the victim"))
	})
}

// Once Guard(nil) has returned, a connection may be pooled: no late shot may hit it.
func TestGuard_NeverHitsAPooledConnection(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		sink := listen(t)
		var spared, hit, late atomic.Int32
		var wg sync.WaitGroup
		addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
			defer wg.Done()
			defer c.Close()
			victim, err := ex.Dial(addrPort(sink), patience, nil)
			if !assert.NoError(t, err) {
				return
			}
			defer victim.Close()
			pause := func() error { // until somebody aborts the victim
				victim.SetReadDeadline(time.Now().Add(rand.N(60 * time.Millisecond)))
				return victim.Await()
			}
			c.Guard(victim)
			pause()
			c.Guard(nil)
			if !victim.Quiet() {
				hit.Add(1)
				return
			}
			spared.Add(1)
			for range 3 {
				if err := pause(); !isTimeout(err) {
					late.Add(1)
				}
			}
		})
		wg.Add(150)
		for range 150 {
			c := dial(t, addr)
			time.AfterFunc(rand.N(60*time.Millisecond), func() { c.Close() })
		}
		wg.Wait()
		t.Logf("%d hit, %d spared", hit.Load(), spared.Load())
		require.Zero(t, late.Load())
		require.Positive(t, hit.Load())
		require.Positive(t, spared.Load())
	})
}

func TestQuiet_TellsWhetherThereIsSomethingToRead(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		both := func() bool {
			quiet := s.conn.Quiet()
			assert.Equal(t, quiet, s.conn.SeemsQuiet())
			return quiet
		}
		on(t, s.ex, func() { assert.True(t, both()) })
		client.Write([]byte("ab"))
		eventually(t, "not quiet", func() bool { return !<-result(s.ex, both) })
		on(t, s.ex, func() {
			s.conn.Read(make([]byte, 1))
			assert.False(t, both())
			s.conn.Read(make([]byte, 1)) // full: nobody knows yet that this was all
			assert.True(t, s.conn.SeemsQuiet())
			assert.True(t, both())
			assert.False(t, s.conn.Gone())
		})
		client.CloseWrite()
		eventually(t, "not quiet", func() bool { return !<-result(s.ex, both) })
		on(t, s.ex, func() {
			assert.True(t, s.conn.Gone())
			s.conn.Read(make([]byte, 1))
			assert.False(t, both(), "the end of the stream stays")
		})
	})
}

func TestQuiet_SeemsQuietLearnsOfBytesByItself(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		client.Write([]byte("x"))
		eventually(t, "not quiet", func() bool { return !<-result(s.ex, s.conn.SeemsQuiet) })
		client2, _ := dialled(t, s.ex)
		require.True(t, <-result(s.ex, client2.SeemsQuiet))
	})
}

func TestQuiet_SeesAReset(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		reset(t, client)
		eventually(t, "not quiet", func() bool { return !<-result(s.ex, s.conn.SeemsQuiet) })
		require.False(t, <-result(s.ex, s.conn.Quiet))
	})
}

func TestDetach_HandsOverUnreadBytes(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		client.Write([]byte("GET"))
		on(t, s.ex, func() {
			s.conn.SetDeadline(time.Now().Add(time.Minute))
			assert.NoError(t, s.conn.Await())
			s.conn.Read(make([]byte, 1))
		})
		plain := receive(t, result(s.ex, func() net.Conn {
			c, err := s.conn.Detach()
			assert.NoError(t, err)
			return c
		}), "the plain connection")
		defer plain.Close()
		require.NoError(t, e.Close(), "the engine has nothing to do with it any more")
		require.NoError(t, plain.SetDeadline(time.Now().Add(patience)))
		client.Write([]byte(" /"))
		b := make([]byte, 4)
		_, err := io.ReadFull(plain, b)
		require.NoError(t, err)
		require.Equal(t, "ET /", string(b))
		require.Equal(t, client.LocalAddr().String(), plain.RemoteAddr().String())
		plain.Write(bytes.ToUpper(b))
		_, err = io.ReadFull(client, b)
		require.NoError(t, err)
		require.NoError(t, plain.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		_, err = plain.Read(b)
		require.True(t, isTimeout(err), "deadlines work on it")
	})
}

func TestDetach_WakesNobodyElsesEvents(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		plain := receive(t, result(s.ex, func() net.Conn { c, _ := s.conn.Detach(); return c }), "the plain connection")
		defer plain.Close()
		other, far := dialled(t, s.ex) // likely in the place of the detached one
		client.Write([]byte("x"))
		require.True(t, <-result(s.ex, other.SeemsQuiet))
		far.Write([]byte("y"))
		require.NoError(t, receive(t, result(s.ex, other.Await), "its own byte"))
	})
}
