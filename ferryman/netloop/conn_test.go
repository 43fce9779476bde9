package netloop_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// driven is a Conn that any goroutine may use: each call becomes a coroutine of its own. One reads
// and one writes at a time, as coroutines must.
type driven struct {
	side
	reading, writing sync.Mutex
}

type outcome struct {
	n   int
	err error
}

func (d *driven) Read(b []byte) (int, error) {
	d.reading.Lock()
	defer d.reading.Unlock()
	o := <-result(d.ex, func() outcome { n, err := d.conn.Read(b); return outcome{n, err} })
	return o.n, o.err
}

func (d *driven) Write(b []byte) (int, error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	o := <-result(d.ex, func() outcome { n, err := d.conn.Write(b); return outcome{n, err} })
	return o.n, o.err
}

func (d *driven) Close() error                       { return <-result(d.ex, d.conn.Close) }
func (d *driven) LocalAddr() net.Addr                { return <-result(d.ex, d.conn.LocalAddr) }
func (d *driven) RemoteAddr() net.Addr               { return <-result(d.ex, d.conn.RemoteAddr) }
func (d *driven) SetDeadline(t time.Time) error      { return d.set(d.conn.SetDeadline, t) }
func (d *driven) SetReadDeadline(t time.Time) error  { return d.set(d.conn.SetReadDeadline, t) }
func (d *driven) SetWriteDeadline(t time.Time) error { return d.set(d.conn.SetWriteDeadline, t) }

func (d *driven) set(f func(time.Time) error, t time.Time) error {
	return <-result(d.ex, func() error { return f(t) })
}

func TestConn_KeepsTheContractOfNetConn(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		accepted := make(chan side)
		addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
			ex.Go(func() {}) // coroutines of its own are no hindrance
			go func() { accepted <- side{ex, c} }()
		})
		nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
			client := make(chan net.Conn, 1)
			go func() {
				if c := tryDial(addr); c != nil {
					c.SetDeadline(time.Time{})
					client <- c
				}
			}()
			s := &driven{side: <-accepted}
			c := <-client
			return s, c, func() { s.Close(); c.Close() }, nil
		})
	})
}

func TestConn_EchoesWhateverComesInWhateverPieces(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		addr := serve(t, e, echo)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				c := dial(t, addr)
				sent := make([]byte, 1<<(i%18)+r.IntN(100))
				for j := range sent {
					sent[j] = byte(r.Int())
				}
				go func() {
					for b := sent; len(b) > 0; {
						n := min(len(b), 1+r.IntN(16<<(i%13)))
						c.Write(b[:n])
						b = b[n:]
					}
					c.CloseWrite()
				}()
				got, err := io.ReadAll(c)
				assert.NoError(t, err)
				assert.True(t, bytes.Equal(sent, got), "connection %d: got %d of %d bytes", i, len(got), len(sent))
			})
		}
		wg.Wait()
	})
}

func TestConn_ManyShortConnectionsNeverMixUp(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
			b := make([]byte, 64)
			n, err := c.Read(b)
			if err == nil {
				_, err = fmt.Fprintf(c, "%s from %s", b[:n], c.RemoteAddr())
			}
			assert.NoError(t, err)
			c.Close() // the descriptor is free for the next connection of either side at once
		})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 150 {
					c := tryDial(addr)
					if !assert.NotNil(t, c) {
						return
					}
					fmt.Fprintf(c, "%d/%d", i, j)
					got, err := io.ReadAll(c)
					assert.NoError(t, err)
					assert.Equal(t, fmt.Sprintf("%d/%d from %s", i, j, c.LocalAddr()), string(got))
					c.Close()
				}
			})
		}
		wg.Wait()
	})
}

func TestConn_HalfCloseLeavesTheOtherDirectionOpen(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)

		require.NoError(t, client.CloseWrite())
		on(t, s.ex, func() {
			_, err := s.conn.Read(make([]byte, 1))
			assert.Equal(t, io.EOF, err)
			assert.True(t, s.conn.Gone())
			_, err = s.conn.Write([]byte("still here"))
			assert.NoError(t, err)
			assert.NoError(t, s.conn.CloseWrite())
			_, err = s.conn.Write([]byte("no more"))
			assert.Error(t, err)
		})
		got, err := io.ReadAll(client)
		require.NoError(t, err)
		require.Equal(t, "still here", string(got))
	})
}

func TestConn_OwnHalfCloseStillReads(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		on(t, s.ex, func() { assert.NoError(t, s.conn.CloseWrite()) })
		_, err := client.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		got := result(s.ex, func() string {
			b, err := io.ReadAll(s.conn)
			assert.NoError(t, err)
			return string(b)
		})
		_, err = client.Write([]byte("late"))
		require.NoError(t, err)
		require.NoError(t, client.CloseWrite())
		require.Equal(t, "late", receive(t, got, "the bytes"))
	})
}

func TestConn_ResetEndsReadAndWrite(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		read := result(s.ex, func() error { _, err := s.conn.Read(make([]byte, 1)); return err })
		reset(t, client)
		err := receive(t, read, "the end of Read")
		require.Error(t, err)
		require.NotEqual(t, io.EOF, err)
		on(t, s.ex, func() {
			assert.True(t, s.conn.Gone())
			assert.NoError(t, s.conn.Await(), "there is an end to be read")
			_, err := s.conn.Write(make([]byte, 1))
			assert.Error(t, err)
			assert.NoError(t, s.conn.Close())
		})
	})
}

func TestConn_ResetTellsThePeer(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		on(t, s.ex, func() {
			s.conn.Write([]byte("all there is?"))
			assert.NoError(t, s.conn.Reset())
			assertClosed(t, s.conn.Reset())
		})
		_, err := io.ReadAll(client)
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

func TestConn_WriteWaitsForASlowReader(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		message := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
		wrote := result(s.ex, func() outcome {
			n, err := s.conn.Write(message)
			s.conn.Close()
			return outcome{n, err}
		})
		got, err := io.ReadAll(client)
		require.NoError(t, err)
		require.Equal(t, outcome{n: len(message)}, receive(t, wrote, "the end of Write"))
		require.True(t, bytes.Equal(message, got))
	})
}

func TestConn_OneCoroutineReadsWhileAnotherWrites(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		served := make(chan struct{})
		addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
			defer close(served)
			defer c.Close()
			done := ex.NewEvent()
			ex.Go(func() {
				defer done.Set()
				_, err := c.Write(make([]byte, 4<<20))
				assert.NoError(t, err)
				c.CloseWrite()
			})
			n, err := io.Copy(io.Discard, c)
			assert.NoError(t, err)
			assert.EqualValues(t, 4<<20, n)
			done.Wait()
		})
		c := dial(t, addr)
		go func() {
			c.Write(make([]byte, 4<<20))
			c.CloseWrite()
		}()
		n, err := io.Copy(io.Discard, c)
		require.NoError(t, err)
		require.EqualValues(t, 4<<20, n)
		receive(t, served, "the server's side")
	})
}

func TestConn_KnowsItsAddresses(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		c, far := dialled(t, s.ex)
		on(t, s.ex, func() {
			assert.Equal(t, client.LocalAddr().String(), s.conn.RemoteAddr().String())
			assert.Equal(t, client.RemoteAddr().String(), s.conn.LocalAddr().String())
			assert.IsType(t, &net.TCPAddr{}, s.conn.RemoteAddr())
			assert.Equal(t, far.LocalAddr().String(), c.RemoteAddr().String())
			assert.Equal(t, far.RemoteAddr().String(), c.LocalAddr().String())
		})
	})
}

func TestConn_SpeaksIPv6(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		l, err := net.Listen("tcp", "[::1]:0")
		require.NoError(t, err)
		accepted := make(chan side, 1)
		go e.Serve(l, func(ex netloop.Executor, c netloop.Conn) { accepted <- side{ex, c} })
		client := dial(t, l.Addr().String())
		s := receive(t, accepted, "a connection")
		on(t, s.ex, func() {
			assert.Equal(t, client.LocalAddr().String(), s.conn.RemoteAddr().String())
			c, err := s.ex.Dial(addrPort(l), patience, nil)
			if assert.NoError(t, err) {
				assert.Equal(t, l.Addr().String(), c.RemoteAddr().String())
				c.Close()
			}
		})
	})
}

func TestConn_ClosedIsClosed(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, _ := pair(t, e)
		on(t, s.ex, func() {
			assert.NoError(t, s.conn.Close())
			_, err := s.conn.Read(make([]byte, 1))
			assertClosed(t, err)
			_, err = s.conn.Write(make([]byte, 1))
			assertClosed(t, err)
			assertClosed(t, s.conn.Await())
			assertClosed(t, s.conn.Close())
			assertClosed(t, s.conn.CloseWrite())
			assertClosed(t, s.conn.SetDeadline(time.Now()))
			assert.False(t, s.conn.Quiet())
			assert.False(t, s.conn.SeemsQuiet())
			s.conn.Guard(nil)
			s.conn.Abort()
			_, err = s.conn.Detach()
			assert.Error(t, err)
		})
	})
}

func TestConn_CloseWakesThoseWhoWait(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, _ := pair(t, e)
		read := result(s.ex, func() error { _, err := s.conn.Read(make([]byte, 1)); return err })
		wrote := result(s.ex, func() error { _, err := s.conn.Write(tooMuch); return err })
		on(t, s.ex, func() { s.conn.Close() })
		assertClosed(t, receive(t, read, "the end of Read"))
		assertClosed(t, receive(t, wrote, "the end of Write"))
	})
}

func TestConn_AwaitTakesNothingAway(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		awaited := result(s.ex, s.conn.Await)
		_, err := client.Write([]byte("ab"))
		require.NoError(t, err)
		require.NoError(t, receive(t, awaited, "Await"))
		on(t, s.ex, func() {
			b := make([]byte, 1)
			for _, want := range "ab" {
				assert.NoError(t, s.conn.Await())
				_, err := s.conn.Read(b)
				assert.NoError(t, err)
				assert.EqualValues(t, want, b[0])
			}
		})
		// The last read filled its buffer, so that it could not tell whether there was more.
		awaited = result(s.ex, s.conn.Await)
		client.CloseWrite()
		require.NoError(t, receive(t, awaited, "Await"))
		on(t, s.ex, func() {
			_, err := s.conn.Read(make([]byte, 1))
			assert.Equal(t, io.EOF, err)
			assert.NoError(t, s.conn.Await())
		})
	})
}

// Reads stop at urgent data, so a short one does not mean that nothing is left.
func TestConn_UrgentDataHidesNothing(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		raw, err := client.SyscallConn()
		require.NoError(t, err)
		client.Write([]byte("before"))
		require.NoError(t, raw.Control(func(fd uintptr) {
			assert.NoError(t, syscall.Sendto(int(fd), []byte("!"), syscall.MSG_OOB, nil))
		}))
		client.Write([]byte("after"))
		want := len("beforeafter")
		on(t, s.ex, func() {
			s.conn.SetReadDeadline(time.Now().Add(patience))
			var got []byte
			for b := make([]byte, 64); len(got) < want; {
				n, err := s.conn.Read(b)
				if !assert.NoError(t, err) {
					return
				}
				got = append(got, b[:n]...)
			}
			assert.Equal(t, "beforeafter", string(got))
		})
	})
}

// A full read leaves open whether more is there. Await must not take that for input.
func TestConn_AwaitAfterAFullReadWaits(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		client.Write([]byte("x"))
		on(t, s.ex, func() {
			s.conn.Read(make([]byte, 1))
			s.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			assert.True(t, isTimeout(s.conn.Await()))
		})
	})
}
