package netloop_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// overdue sets a read deadline, lets something happen, and returns when the deadline has passed and something can be
// read.
func overdue(t *testing.T, s side, meanwhile func()) {
	t.Helper()
	const limit = 30 * time.Millisecond
	on(t, s.ex, func() { assert.NoError(t, s.conn.SetReadDeadline(time.Now().Add(limit))) })
	meanwhile()
	<-time.After(limit + 20*time.Millisecond)
	arrived(t, s)
}

// arrived waits until something can be read.
func arrived(t *testing.T, s side) {
	t.Helper()
	eventually(t, "something to read", func() bool { return !receive(t, result(s.ex, s.conn.Quiet), "Quiet") })
}

func TestExpiry_WhatCameBeforeTheDeadlineIsReadAndNothingElse(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		overdue(t, s, func() { io.WriteString(client, "in time") })
		b := make([]byte, 16)
		on(t, s.ex, func() {
			assert.NoError(t, s.conn.Await())
			n, err := s.conn.Read(b[:3])
			assert.NoError(t, err)
			rest, err := s.conn.Read(b[n:])
			assert.NoError(t, err)
			assert.Equal(t, "in time", string(b[:n+rest]))
		})
		io.WriteString(client, "too late")
		arrived(t, s)
		on(t, s.ex, func() {
			for range 3 {
				assert.True(t, isTimeout(s.conn.Await()))
				_, err := s.conn.Read(b)
				assert.True(t, isTimeout(err), err)
			}
			s.conn.SetReadDeadline(time.Now().Add(patience))
			n, err := s.conn.Read(b)
			assert.NoError(t, err)
			assert.Equal(t, "too late", string(b[:n]))
		})
	})
}

func TestExpiry_AnEndThatCameBeforeTheDeadlineIsRead(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		overdue(t, s, func() {
			io.WriteString(client, "x")
			require.NoError(t, client.CloseWrite())
		})
		on(t, s.ex, func() {
			b := make([]byte, 8)
			n, err := s.conn.Read(b)
			assert.NoError(t, err)
			assert.Equal(t, "x", string(b[:n]))
			_, err = s.conn.Read(b)
			assert.Equal(t, io.EOF, err)
		})
	})
}

// A deadline in the past is there to wake somebody, who is to do something else than read.
func TestExpiry_ADeadlineInThePastLooksForNothing(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		io.WriteString(client, "x")
		arrived(t, s)
		on(t, s.ex, func() {
			s.conn.SetReadDeadline(time.Unix(1, 0))
			assert.True(t, isTimeout(s.conn.Await()))
			b := make([]byte, 8)
			_, err := s.conn.Read(b)
			assert.True(t, isTimeout(err), err)
			s.conn.SetReadDeadline(time.Time{})
			n, err := s.conn.Read(b)
			assert.NoError(t, err)
			assert.Equal(t, "x", string(b[:n]))
		})
	})
}
