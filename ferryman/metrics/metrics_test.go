package metrics_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/metrics"
)

// upstream is one with fixed numbers.
type upstream struct {
	addr        string
	state       int
	transitions [3]uint64
	inUse, idle int
}

func (u upstream) Addr() string              { return u.addr }
func (u upstream) State() int                { return u.state }
func (u upstream) Transitions(to int) uint64 { return u.transitions[to] }
func (u upstream) Connections() (int, int)   { return u.inUse, u.idle }

func page(t *testing.T, s *metrics.Set) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body)
	return w.Body.String()
}

func TestSet_CountsAnswersByStatus(t *testing.T) {
	s := metrics.New("1.0", "abc", "go1")
	routes := s.Sync([]metrics.RouteKey{{Prefix: "/", Upstream: "a:80"}}, []metrics.Upstream{upstream{addr: "a:80"}})
	routes[0].Answered(200)
	require.Contains(t, page(t, s), `ferryman_requests_total{route="/",status="200",upstream="a:80"} 1`+"\n")
}
