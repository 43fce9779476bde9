package netloop_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// reflect answers each message of one byte with one byte, without allocating.
func reflect(c net.Conn) {
	b := make([]byte, 1)
	for {
		if _, err := c.Read(b); err != nil {
			return
		}
		c.Write(b)
	}
}

func TestCost_NothingIsAllocatedInSteadyState(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e netloop.Engine) {
		s, client := pair(t, e)
		go reflect(client)
		victim, _ := dialled(t, s.ex)
		b := make([]byte, 16)
		on(t, s.ex, func() {
			c := s.conn
			allocs := testing.AllocsPerRun(500, func() {
				now := s.ex.Now()
				c.SetReadDeadline(now.Add(time.Minute))
				c.SetWriteDeadline(now.Add(time.Second))
				c.Guard(victim)
				c.Write(b[:1])
				if err := c.Await(); err != nil {
					t.Error(err)
				}
				if n, err := c.Read(b); n != 1 || err != nil {
					t.Error(n, err)
				}
				c.Guard(nil)
				c.SetDeadline(time.Time{})
				c.Quiet()
				c.SeemsQuiet()
				c.Gone()
				c.RemoteAddr()
				c.LocalAddr()
			})
			assert.Zero(t, allocs)
		})
	})
}

func TestCost_ACoroutineIsUsedAgain(t *testing.T) {
	e := engines(t, netloop.Options{Loops: 1})["loops"]
	if e == nil {
		return
	}
	s, _ := pair(t, e)
	on(t, s.ex, func() {
		event := s.ex.NewEvent()
		allocs := testing.AllocsPerRun(500, func() {
			event = s.ex.NewEvent()
			s.ex.Go(event.Set)
			event.Wait()
		})
		assert.LessOrEqual(t, allocs, 2.0, "an event and a method value")
	})
}
