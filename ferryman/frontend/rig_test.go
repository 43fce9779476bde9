package frontend

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/netloop"
	"github.com/Bunty9/ferryman/ferryman/route"
)

type uncounted struct{}

func (uncounted) Head(time.Duration) {}
func (uncounted) Answered(int)       {}
func (uncounted) ClientAborted()     {}

// newServer returns a Server on goroutines that has no route.
func newServer(t testing.TB, bodyIdle time.Duration) *Server {
	t.Helper()
	routes, err := route.Build[*exchange.Route](nil)
	require.NoError(t, err)
	shared := &exchange.Shared{Unrouted: uncounted{}}
	shared.Snapshot.Store(&exchange.Snapshot{Routes: routes, BodyIdleTimeout: bodyIdle})
	g := netloop.Goroutines(netloop.Options{})
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return New(Options{Shared: shared, Engine: g, Goroutines: g, Log: slog.New(slog.DiscardHandler),
		HeadTimeout: time.Minute, HandshakeTimeout: time.Minute, UnreadLimit: 1 << 20})
}
