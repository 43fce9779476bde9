package netloop_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/netloop"
)

const messageSize = 32

// relay passes messages on to an upstream over pooled connections, one pool per executor, and
// drops the upstream's connection when the client leaves: a proxy in miniature.
type relay struct {
	upstream string
	mu       sync.Mutex // held for moments only: coroutines must not wait
	idle     map[int][]netloop.Conn
	reused   atomic.Int64
	cut      atomic.Int64
}

func (r *relay) get(ex netloop.Executor) (netloop.Conn, error) {
	r.mu.Lock()
	for pool := r.idle[ex.Index()]; len(pool) > 0; pool = r.idle[ex.Index()] {
		c := pool[len(pool)-1]
		r.idle[ex.Index()] = pool[:len(pool)-1]
		if c.SeemsQuiet() {
			r.mu.Unlock()
			r.reused.Add(1)
			return c, nil
		}
		c.Close()
	}
	r.mu.Unlock()
	return ex.Dial(netip.MustParseAddrPort(r.upstream), patience, nil)
}

func (r *relay) put(ex netloop.Executor, c netloop.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !c.SeemsQuiet() {
		c.Close()
		return
	}
	r.idle[ex.Index()] = append(r.idle[ex.Index()], c)
}

func (r *relay) serve(ex netloop.Executor, c netloop.Conn) {
	defer c.Close()
	for c.Await() == nil && r.pass(ex, c) {
	}
}

func (r *relay) pass(ex netloop.Executor, c netloop.Conn) bool {
	b := make([]byte, messageSize)
	if _, err := io.ReadFull(c, b); err != nil {
		return false
	}
	up, err := r.get(ex)
	if err != nil {
		return false
	}
	c.Guard(up)
	up.SetDeadline(ex.Now().Add(patience))
	_, err = up.Write(b)
	if err == nil {
		_, err = io.ReadFull(up, b)
	}
	c.Guard(nil)
	if err != nil {
		r.cut.Add(1)
		up.Close()
		return false
	}
	r.put(ex, up)
	_, err = c.Write(b)
	return err == nil
}

// slowEcho echoes messages, some of them late.
func slowEcho(_ netloop.Executor, c netloop.Conn) {
	defer c.Close()
	b := make([]byte, messageSize)
	for {
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		if rand.IntN(20) == 0 { // the engine has goroutines, which may wait
			<-time.After(rand.N(100 * time.Millisecond))
		}
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

func TestRelay_NobodyGetsAnothersAnswerWhoeverLeavesEarly(t *testing.T) {
	forEachTransport(t, func(t *testing.T, e netloop.Engine) {
		r := &relay{idle: make(map[int][]netloop.Conn)}
		r.upstream = serve(t, netloop.Goroutines(netloop.Options{}), slowEcho)
		addr := serve(t, e, r.serve)
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				for j := range 8 {
					visit(t, addr, fmt.Sprintf("client %d visit %d", i, j))
				}
			})
		}
		wg.Wait()
		t.Logf("%d reused, %d cut", r.reused.Load(), r.cut.Load())
		require.Positive(t, r.reused.Load())
		require.Positive(t, r.cut.Load())
	})
}

// visit sends a few messages over one connection, and leaves before the last answer now and then.
func visit(t *testing.T, addr, who string) {
	c := tryDial(addr)
	if !assert.NotNil(t, c) {
		return
	}
	defer c.Close()
	for k := range 10 {
		sent := fmt.Sprintf("%-*s", messageSize, fmt.Sprintf("%s %d", who, k))
		io.WriteString(c, sent)
		switch rand.IntN(30) {
		case 0:
			return
		case 1:
			c.SetLinger(0)
			return
		case 2:
			c.CloseWrite()
			return
		}
		got := make([]byte, messageSize)
		_, err := io.ReadFull(c, got)
		assert.NoError(t, err)
		assert.Equal(t, sent, string(got))
	}
}
