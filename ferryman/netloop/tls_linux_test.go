package netloop_test

import (
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// withRecordClient returns a connection on the only loop of an engine, its client, and a bystander: the client
// of an echo on the same loop.
func withRecordClient(t *testing.T) (side, *recordClient, *peer) {
	t.Helper()
	e := transports(t, netloop.Options{Loops: 1})["TLS on loops"]
	ch := make(chan side, 1)
	var echoes atomic.Bool
	addr := serve(t, e, func(ex netloop.Executor, c netloop.Conn) {
		if echoes.Load() {
			echo(ex, c)
			return
		}
		ch <- side{ex, c}
	})
	client := newRecordClient(t, addr)
	s := receive(t, ch, "a connection")
	echoes.Store(true)
	bystander := dial(t, addr)
	roundTrip(t, bystander, "hello")
	return s, client, bystander
}

// readBytes has a coroutine read until there is an error.
func readBytes(s side) (got <-chan string, end <-chan error) {
	bytes, ended := make(chan string, 1<<20), make(chan error, 1)
	s.ex.Post(func() {
		b := make([]byte, 16<<10)
		for {
			n, err := s.conn.Read(b)
			if n > 0 {
				bytes <- string(b[:n])
			}
			if err != nil {
				ended <- err
				return
			}
		}
	})
	return bytes, ended
}

func TestTLS_ARecordMayComeByteByByte(t *testing.T) {
	s, client, bystander := withRecordClient(t)
	got, ended := readBytes(s)
	record := client.record(typeData, "drip")
	for i := range record {
		require.Empty(t, got)
		client.send(t, record[i:i+1])
		roundTrip(t, bystander, "meanwhile")
	}
	require.Equal(t, "drip", receive(t, got, "the record"))
	update := client.keyUpdate()
	client.send(t, update[:7])
	roundTrip(t, bystander, "meanwhile")
	client.send(t, update[7:], client.record(typeData, "new key"))
	require.Equal(t, "new key", receive(t, got, "the record after it"))

	// The end of the stream inside a record is no proper one.
	client.send(t, client.record(typeData, "cut")[:9])
	require.NoError(t, client.TCPConn.CloseWrite())
	require.Equal(t, io.ErrUnexpectedEOF, receive(t, ended, "the end"))
}

func TestTLS_AwaitTakesAPartOfARecordForNothing(t *testing.T) {
	s, client, _ := withRecordClient(t)
	record := client.record(typeData, "x")
	client.send(t, record[:len(record)-1])
	on(t, s.ex, func() {
		s.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		assert.True(t, isTimeout(s.conn.Await()))
		s.conn.SetReadDeadline(time.Time{})
	})
	client.send(t, record[len(record)-1:])
	on(t, s.ex, func() {
		assert.NoError(t, s.conn.Await())
		assert.False(t, s.conn.Quiet())
		b := make([]byte, 8)
		n, err := s.conn.Read(b)
		assert.NoError(t, err)
		assert.Equal(t, "x", string(b[:n]))
		assert.True(t, s.conn.Quiet())
	})
}

// What has come in one segment is read to its end before anybody waits for the socket.
func TestTLS_ManyRecordsInOneSegment(t *testing.T) {
	s, client, _ := withRecordClient(t)
	client.send(t, client.record(typeData, "a"), client.record(typeData, "bc"), client.keyUpdate(),
		client.record(typeData, "d"), client.record(typeData, ""), client.record(typeData, "e"))
	on(t, s.ex, func() {
		s.conn.SetReadDeadline(time.Now().Add(patience))
		b, got := make([]byte, 8), ""
		for len(got) < 5 {
			assert.NoError(t, s.conn.Await())
			assert.NoError(t, s.conn.Await())
			n, err := s.conn.Read(b)
			if !assert.NoError(t, err) {
				return
			}
			got += string(b[:n])
		}
		assert.Equal(t, "abcde", got)
		assert.True(t, s.conn.SeemsQuiet())
	})
}

// stuck has a coroutine write tooMuch to a client that reads nothing. It waits for room in the socket from
// the first moment on: that there is none was found out before. For how long there is none is the kernel's
// affair: where its memory for sockets was short, room comes back although nobody reads.
// What is received at the end tells how much of tooMuch was taken in all.
func stuck(t *testing.T, s side) <-chan outcome {
	t.Helper()
	rest := tooMuch
	on(t, s.ex, func() {
		for progress := true; progress; {
			s.conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			n, err := s.conn.Write(rest)
			rest, progress = rest[n:], taken(t, err)
		}
		s.conn.SetWriteDeadline(time.Time{})
	})
	wrote := result(s.ex, func() outcome {
		n, err := s.conn.Write(rest)
		return outcome{len(tooMuch) - len(rest) + n, err}
	})
	on(t, s.ex, func() {}) // it has run
	require.Empty(t, wrote)
	return wrote
}

// crypto/tls answers an update of keys under the lock that a writer needs.
func TestTLS_KeysAreUpdatedWhileAWriterWaits(t *testing.T) {
	s, client, bystander := withRecordClient(t)
	wrote := stuck(t, s)
	got, _ := readBytes(s)
	for range 5 {
		client.send(t, client.keyUpdate(), client.record(typeData, "x"))
		require.Equal(t, "x", receive(t, got, "what came behind a key update"))
		roundTrip(t, bystander, "nobody else is delayed")
	}
	n, err := io.CopyN(io.Discard, client.tls, int64(len(tooMuch))) // the answers are in between
	require.NoError(t, err, n)
	require.NoError(t, receive(t, wrote, "the writer").err)
	on(t, s.ex, func() {
		s.conn.Write([]byte("under the new key"))
		s.conn.Close()
	})
	rest, err := io.ReadAll(client.tls)
	require.NoError(t, err)
	require.Equal(t, "under the new key", string(rest))
}

// The answer to a key update goes out even if nobody writes.
func TestTLS_AKeyUpdateIsAnsweredAtOnce(t *testing.T) {
	s, client, _ := withRecordClient(t)
	got, _ := readBytes(s)
	raw, err := client.SyscallConn()
	require.NoError(t, err)
	client.send(t, client.keyUpdate(), client.record(typeData, "x"))
	receive(t, got, "the byte")
	eventually(t, "the answer has come", func() (there bool) {
		raw.Control(func(fd uintptr) {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			there = n == 1 && err == nil
		})
		return there
	})
}

// What waits to be sent goes out all the same, then the alert, and whoever writes is told only then.
func TestTLS_GarbageEndsReadingWhileAWriterWaits(t *testing.T) {
	for name, garbage := range map[string]func(*recordClient) []byte{
		"no record":     func(*recordClient) []byte { return []byte("GET / HTTP/1.1\r\n\r\n") },
		"forged":        func(c *recordClient) []byte { b := c.record(typeData, "x"); b[len(b)-1] ^= 1; return b },
		"bad handshake": func(c *recordClient) []byte { return c.record(typeHandshake, "\xff\x00\x00\x00") },
	} {
		t.Run(name, func(t *testing.T) {
			s, client, bystander := withRecordClient(t)
			wrote := stuck(t, s)
			_, ended := readBytes(s)
			client.send(t, garbage(client))
			require.Error(t, receive(t, ended, "the end of reading"))
			roundTrip(t, bystander, "nobody else is delayed")
			on(t, s.ex, func() {
				_, err := s.conn.Read(make([]byte, 1))
				assert.Error(t, err, "it stays")
				assert.NoError(t, s.conn.Await(), "and is there to be read")
			})
			got, err := io.Copy(io.Discard, client.tls)
			require.ErrorContains(t, err, "remote error", "the alert")
			o := receive(t, wrote, "the writer")
			require.ErrorContains(t, o.err, "local error", "the same")
			require.EqualValues(t, o.n, got, "nothing that was taken is lost")
			on(t, s.ex, func() { assert.NoError(t, s.conn.Close()) })
			roundTrip(t, bystander, "nobody else is delayed")
		})
	}
}

func TestTLS_AFloodOfKeyUpdatesIsBounded(t *testing.T) {
	for _, name := range []string{"while a writer waits", "while nobody writes"} {
		t.Run(name, func(t *testing.T) {
			s, client, bystander := withRecordClient(t)
			if name == "while a writer waits" {
				wrote := stuck(t, s)
				defer func() { require.ErrorIs(t, receive(t, wrote, "the writer").err, net.ErrClosed) }()
			} else {
				on(t, s.ex, func() {
					s.conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
					_, err := s.conn.Write(tooMuch)
					assert.True(t, isTimeout(err))
				})
			}
			got, ended := readBytes(s)
			var err error
			for len(ended) == 0 {
				if _, err = client.TCPConn.Write(append(client.keyUpdate(), client.record(typeData, "x")...)); err != nil {
					break
				}
			}
			require.ErrorContains(t, receive(t, ended, "the end of the flood"), "answers")
			t.Logf("%d key updates were answered", len(got))
			roundTrip(t, bystander, "nobody else is delayed")
			on(t, s.ex, func() { assert.NoError(t, s.conn.Close()) })
		})
	}
}

// taken is what the error of a Write that was late tells.
func taken(t *testing.T, err error) bool {
	var late interface{ Taken() bool }
	assert.True(t, isTimeout(err), err)
	return assert.ErrorAs(t, err, &late) && late.Taken()
}

// Each byte that the peer takes counts as progress, also where it is one of a piece that was encrypted
// before; and nothing that it does not take.
func TestTLS_ALateWriteTellsWhetherThePeerTakesAnything(t *testing.T) {
	s, client, _ := withRecordClient(t)
	var progress, stalls atomic.Int32
	wrote := result(s.ex, func() error {
		for b := tooMuch; ; {
			s.conn.SetWriteDeadline(time.Now().Add(60 * time.Millisecond))
			n, err := s.conn.Write(b)
			if err == nil {
				return nil
			}
			b = b[n:]
			if taken(t, err) {
				progress.Add(1)
			} else if assert.Zero(t, n) {
				stalls.Add(1)
			}
		}
	})
	eventually(t, "a stall", func() bool { return stalls.Load() > 1 })
	require.Positive(t, progress.Load())
	n, err := io.CopyN(io.Discard, client.tls, int64(len(tooMuch)))
	require.NoError(t, err, n)
	require.NoError(t, receive(t, wrote, "the writer"), "nothing was lost or sent twice")
}

func TestTLS_WhatWasOnlyEncryptedIsNoProgress(t *testing.T) {
	s, client, _ := withRecordClient(t)
	on(t, s.ex, func() {
		write := func(b []byte) error {
			s.conn.SetWriteDeadline(time.Now().Add(60 * time.Millisecond))
			_, err := s.conn.Write(b)
			return err
		}
		for { // until nothing at all goes out
			err := write(make([]byte, 100))
			for err != nil && taken(t, err) {
				err = write(nil)
			}
			if err != nil {
				return
			}
		}
	})
	go io.Copy(io.Discard, client.tls)
	on(t, s.ex, func() {
		s.conn.SetWriteDeadline(time.Now().Add(patience))
		_, err := s.conn.Write(nil)
		assert.NoError(t, err, "what waits is sent by a Write of nothing")
	})
}

func TestTLS_CloseSaysSoUnlessItWasAborted(t *testing.T) {
	const record = 5 + 1 + 16 // what each adds to its payload
	for _, row := range []struct {
		name string
		end  func(c netloop.Conn)
		want int
	}{
		{"close", func(c netloop.Conn) { c.Close() }, record + len("end") + record + len("al")},
		{"close after a half close", func(c netloop.Conn) { c.CloseWrite(); c.Close() }, record + len("end") + record + len("al")},
		{"abort", func(c netloop.Conn) { c.Abort(); c.Close() }, record + len("end")},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, client, _ := withRecordClient(t)
			on(t, s.ex, func() {
				s.conn.Write([]byte("end"))
				row.end(s.conn)
			})
			raw, err := io.ReadAll(client.TCPConn)
			require.NoError(t, err)
			require.Len(t, raw, row.want)
		})
	}
}

func TestTLS_AHalfCloseLeavesTheSocketOpen(t *testing.T) {
	s, client, _ := withRecordClient(t)
	got, _ := readBytes(s)
	on(t, s.ex, func() {
		assert.NoError(t, s.conn.CloseWrite())
		_, err := s.conn.Write([]byte("no more"))
		assert.Error(t, err)
	})
	_, err := client.tls.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	client.send(t, client.record(typeData, "late"))
	require.Equal(t, "late", receive(t, got, "what still comes"))
}

func TestTLS_CloseNeverWaits(t *testing.T) {
	s, _, bystander := withRecordClient(t)
	wrote := stuck(t, s)
	on(t, s.ex, func() {
		others := false
		s.ex.Go(func() { others = true })
		assert.NoError(t, s.conn.Close())
		assert.False(t, others, "it let others run")
	})
	require.ErrorIs(t, receive(t, wrote, "the writer").err, net.ErrClosed)
	roundTrip(t, bystander, "hello")
}

// Older versions go another way through crypto/tls.
func TestTLS_Version12(t *testing.T) {
	e := transports(t, netloop.Options{Loops: 1})["TLS on loops"]
	addr := serve(t, e, echo)
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	for range 3 {
		roundTrip(t, c, "hello")
	}
	require.NoError(t, c.CloseWrite())
	_, err = c.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
}
