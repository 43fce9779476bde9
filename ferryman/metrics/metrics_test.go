package metrics_test

import (
	"math"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/metrics"
)

// upstream is one whose numbers are set by a test.
type upstream struct {
	addr        string
	state       int
	transitions [3]uint64
	inUse, idle int
}

func (u *upstream) Addr() string              { return u.addr }
func (u *upstream) State() int                { return u.state }
func (u *upstream) Transitions(to int) uint64 { return u.transitions[to] }
func (u *upstream) Connections() (int, int)   { return u.inUse, u.idle }

func ups(addrs ...string) (all []metrics.Upstream) {
	for _, addr := range addrs {
		all = append(all, &upstream{addr: addr})
	}
	return all
}

var (
	root = metrics.RouteKey{Prefix: "/", Upstream: "a:80"}
	api  = metrics.RouteKey{Prefix: "/api", Upstream: "b:80"}
)

// page returns what a scrape sees of ferryman, without comments.
func page(t *testing.T, s *metrics.Set) []string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body)
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "ferryman_") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

func requireLine(t *testing.T, s *metrics.Set, want string) {
	t.Helper()
	lines := page(t, s)
	require.True(t, slices.Contains(lines, want), "%s is not in\n%s", want, strings.Join(lines, "\n"))
}

func TestSet_PageIsThis(t *testing.T) {
	s := metrics.New("1.2.3", "abc123", "go1.26")
	routes := s.Sync([]metrics.RouteKey{root, api}, []metrics.Upstream{
		&upstream{addr: "a:80", inUse: 3, idle: 4},
		&upstream{addr: "b:80", state: 2, transitions: [3]uint64{1, 7, 6}},
	})
	s.Connections(func() (active, idle int) { return 5, 6 })
	s.LinesLost(func() map[string]uint64 { return map[string]uint64{"main": 7, "access": 8} })
	s.CertificateExpiries(func() map[string]time.Time { return map[string]time.Time{"tls/cert.pem": time.Unix(1_800_000_000, 0)} })
	s.Reloaded(true, time.UnixMilli(1_700_000_000_250))
	s.Reloaded(false, time.Unix(1_800_000_000, 0))
	s.Reloaded(false, time.Unix(1_800_000_001, 0))
	for range 2 {
		routes[0].Answered(200)
	}
	routes[0].Answered(100)
	routes[0].Answered(999)
	routes[1].Answered(503)
	routes[1].ClientAborted()
	s.Unrouted().Answered(404)
	for _, d := range []time.Duration{100 * time.Microsecond, 2 * time.Second, time.Hour} {
		routes[0].Head(d)
	}
	require.Equal(t, strings.TrimSpace(`
ferryman_build_info{commit="abc123",goversion="go1.26",version="1.2.3"} 1
ferryman_certificate_expiry_timestamp_seconds{name="tls/cert.pem"} 1.8e+09
ferryman_circuit_state{upstream="a:80"} 0
ferryman_circuit_state{upstream="b:80"} 2
ferryman_circuit_transitions_total{to="closed",upstream="a:80"} 0
ferryman_circuit_transitions_total{to="closed",upstream="b:80"} 1
ferryman_circuit_transitions_total{to="half_open",upstream="a:80"} 0
ferryman_circuit_transitions_total{to="half_open",upstream="b:80"} 6
ferryman_circuit_transitions_total{to="open",upstream="a:80"} 0
ferryman_circuit_transitions_total{to="open",upstream="b:80"} 7
ferryman_client_aborts_total{route="/",upstream="a:80"} 0
ferryman_client_aborts_total{route="/api",upstream="b:80"} 1
ferryman_client_aborts_total{route="none",upstream="none"} 0
ferryman_config_last_reload_success_timestamp_seconds 1.70000000025e+09
ferryman_config_reloads_total{result="failure"} 2
ferryman_config_reloads_total{result="success"} 1
ferryman_connections{state="active"} 5
ferryman_connections{state="idle"} 6
ferryman_log_lines_lost_total{log="access"} 8
ferryman_log_lines_lost_total{log="main"} 7
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="0.00025"} 1
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="0.0005"} 1
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="0.001"} 1
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="0.0025"} 1
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="0.005"} 1
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="0.01"} 1
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="0.025"} 1
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="0.05"} 1
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="0.1"} 1
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="0.25"} 1
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="0.5"} 1
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="1.5"} 1
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="2.5"} 2
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="7.5"} 2
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="15.5"} 2
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="30.5"} 2
ferryman_request_duration_seconds_bucket{route="/",upstream="a:80",le="+Inf"} 3
ferryman_request_duration_seconds_sum{route="/",upstream="a:80"} 3602.0001
ferryman_request_duration_seconds_count{route="/",upstream="a:80"} 3
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="0.00025"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="0.0005"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="0.001"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="0.0025"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="0.005"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="0.01"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="0.025"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="0.05"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="0.1"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="0.25"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="0.5"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="1.5"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="2.5"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="7.5"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="15.5"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="30.5"} 0
ferryman_request_duration_seconds_bucket{route="/api",upstream="b:80",le="+Inf"} 0
ferryman_request_duration_seconds_sum{route="/api",upstream="b:80"} 0
ferryman_request_duration_seconds_count{route="/api",upstream="b:80"} 0
ferryman_requests_total{route="/",status="100",upstream="a:80"} 1
ferryman_requests_total{route="/",status="200",upstream="a:80"} 2
ferryman_requests_total{route="/",status="502",upstream="a:80"} 0
ferryman_requests_total{route="/",status="503",upstream="a:80"} 0
ferryman_requests_total{route="/",status="504",upstream="a:80"} 0
ferryman_requests_total{route="/",status="999",upstream="a:80"} 1
ferryman_requests_total{route="/api",status="200",upstream="b:80"} 0
ferryman_requests_total{route="/api",status="502",upstream="b:80"} 0
ferryman_requests_total{route="/api",status="503",upstream="b:80"} 1
ferryman_requests_total{route="/api",status="504",upstream="b:80"} 0
ferryman_requests_total{route="none",status="400",upstream="none"} 0
ferryman_requests_total{route="none",status="404",upstream="none"} 1
ferryman_upstream_alive{upstream="a:80"} 1
ferryman_upstream_alive{upstream="b:80"} 0
ferryman_upstream_connections{state="idle",upstream="a:80"} 4
ferryman_upstream_connections{state="idle",upstream="b:80"} 0
ferryman_upstream_connections{state="in_use",upstream="a:80"} 3
ferryman_upstream_connections{state="in_use",upstream="b:80"} 0`), strings.Join(page(t, s), "\n"))
}

// A counter that is born at 1 is invisible to increase().
func TestSet_SeriesOfAlertsAreThereAtZeroFromTheStart(t *testing.T) {
	s := metrics.New("1", "c", "go")
	s.Sync([]metrics.RouteKey{root}, ups("a:80"))
	for _, want := range []string{
		`ferryman_circuit_transitions_total{to="closed",upstream="a:80"} 0`,
		`ferryman_circuit_transitions_total{to="open",upstream="a:80"} 0`,
		`ferryman_circuit_transitions_total{to="half_open",upstream="a:80"} 0`,
		`ferryman_config_reloads_total{result="success"} 0`,
		`ferryman_config_reloads_total{result="failure"} 0`,
		`ferryman_client_aborts_total{route="/",upstream="a:80"} 0`,
		`ferryman_client_aborts_total{route="none",upstream="none"} 0`,
		`ferryman_request_duration_seconds_count{route="/",upstream="a:80"} 0`,
		`ferryman_upstream_alive{upstream="a:80"} 1`,
		`ferryman_connections{state="active"} 0`,
	} {
		requireLine(t, s, want)
	}
}

// Prometheus 2 and 3 write whole numbers in le differently, and these the same.
func TestSet_BucketBoundsHaveADecimalPoint(t *testing.T) {
	s := metrics.New("1", "c", "go")
	s.Sync([]metrics.RouteKey{root}, nil)
	bounds := regexp.MustCompile(`le="([^"]*)"`).FindAllStringSubmatch(strings.Join(page(t, s), "\n"), -1)
	require.Len(t, bounds, 17)
	for _, b := range bounds[:16] {
		require.Regexp(t, `^\d+\.\d+$`, b[1])
		bound, err := strconv.ParseFloat(b[1], 64)
		require.NoError(t, err)
		require.NotEqual(t, math.Trunc(bound), bound)
	}
}

func TestSet_LoadingCountsAsTheFirstSuccessInTimeOnly(t *testing.T) {
	before := time.Now()
	s := metrics.New("1", "c", "go")
	var loaded float64
	for _, line := range page(t, s) {
		if at, ok := strings.CutPrefix(line, "ferryman_config_last_reload_success_timestamp_seconds "); ok {
			loaded, _ = strconv.ParseFloat(at, 64)
		}
	}
	require.InDelta(t, float64(before.Unix()), loaded, 60)
	requireLine(t, s, `ferryman_config_reloads_total{result="success"} 0`)
}

func TestSet_SyncKeepsWhatStaysAndDropsWhatIsGone(t *testing.T) {
	s := metrics.New("1", "c", "go")
	first := s.Sync([]metrics.RouteKey{root, api}, ups("a:80", "b:80"))
	first[0].Answered(200)
	first[1].Answered(200)
	first[1].Head(time.Second)

	moved := metrics.RouteKey{Prefix: "/api", Upstream: "c:80"}
	second := s.Sync([]metrics.RouteKey{moved, root}, ups("c:80", "a:80"))
	require.Same(t, first[0], second[1], "a route that stays keeps its handle, wherever it is in the file")
	second[1].Answered(200)
	requireLine(t, s, `ferryman_requests_total{route="/",status="200",upstream="a:80"} 2`)
	requireLine(t, s, `ferryman_client_aborts_total{route="/api",upstream="c:80"} 0`)

	first[1].Answered(200) // a request that was still out
	first[1].Head(time.Second)
	first[1].ClientAborted()
	require.NotContains(t, strings.Join(page(t, s), "\n"), "b:80")

	third := s.Sync([]metrics.RouteKey{api}, ups("b:80"))
	third[0].Answered(200)
	requireLine(t, s, `ferryman_requests_total{route="/api",status="200",upstream="b:80"} 1`)
	requireLine(t, s, `ferryman_request_duration_seconds_count{route="/api",upstream="b:80"} 0`)
	require.NotContains(t, strings.Join(page(t, s), "\n"), "a:80")
}

func TestSet_UnroutedSurvivesEverySync(t *testing.T) {
	s := metrics.New("1", "c", "go")
	s.Unrouted().Answered(404)
	s.Unrouted().Head(time.Second) // nothing to measure
	s.Sync([]metrics.RouteKey{root}, nil)
	s.Sync(nil, nil)
	s.Unrouted().Answered(404)
	requireLine(t, s, `ferryman_requests_total{route="none",status="404",upstream="none"} 2`)
	require.NotContains(t, strings.Join(page(t, s), "\n"), "duration")
}

func TestRoute_StatusesOutOfRangeDoNotCount(t *testing.T) {
	s := metrics.New("1", "c", "go")
	r := s.Sync([]metrics.RouteKey{root}, nil)[0]
	for _, status := range []int{math.MinInt, -200, -1, 0, 1, 99, 1000, math.MaxInt} {
		r.Answered(status)
	}
	for _, line := range page(t, s) {
		if strings.Contains(line, "requests_total") {
			require.Contains(t, []string{"200", "400", "404", "502", "503", "504"}, regexp.MustCompile(`status="(.*?)"`).FindStringSubmatch(line)[1])
			require.True(t, strings.HasSuffix(line, " 0"), line)
		}
	}
}

// Conformance case 279, for what can reach this package.
func TestSet_NumberOfSeriesIsBoundedByTheConfiguration(t *testing.T) {
	s := metrics.New("1", "c", "go")
	empty := len(page(t, s))
	var r []*metrics.Route
	for i := range 1000 {
		n := strconv.Itoa(i)
		r = s.Sync([]metrics.RouteKey{root, {Prefix: "/" + n, Upstream: n + ":80"}}, ups("a:80", n+":80"))
		for status := range 2000 {
			r[0].Answered(status)
		}
		r[1].Answered(200)
		r[1].Head(time.Second)
	}
	perRoute, perUpstream := 1+len([]string{"sum", "count"})+17, 1+1+3+2
	require.Len(t, page(t, s), empty+2*perRoute+2*perUpstream+900+len([]int{200, 502, 503, 504}))
	s.Sync(nil, nil)
	require.Len(t, page(t, s), empty)
}

func TestSet_RegisterExposesTheSameElsewhere(t *testing.T) {
	s := metrics.New("1", "c", "go")
	s.Sync([]metrics.RouteKey{root}, ups("a:80"))[0].Answered(200)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, s.Register(registry))
	families, err := registry.Gather()
	require.NoError(t, err)
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	require.Equal(t, []string{
		"ferryman_build_info", "ferryman_circuit_state", "ferryman_circuit_transitions_total", "ferryman_client_aborts_total",
		"ferryman_config_last_reload_success_timestamp_seconds", "ferryman_config_reloads_total", "ferryman_connections",
		"ferryman_request_duration_seconds", "ferryman_requests_total", "ferryman_upstream_alive", "ferryman_upstream_connections",
	}, names)
	require.Error(t, s.Register(registry), "twice")
	require.Error(t, metrics.New("1", "c", "go").Register(registry), "two proxies need registries, or labels, of their own")
	require.NoError(t, metrics.New("2", "c", "go").Register(prometheus.WrapRegistererWith(prometheus.Labels{"proxy": "b"}, prometheus.NewRegistry())))
}

func TestSet_PageHasTheRuntimeAndTheProcessToo(t *testing.T) {
	w := httptest.NewRecorder()
	metrics.New("1", "c", "go").Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Contains(t, w.Body.String(), "\ngo_goroutines ")
	require.Contains(t, w.Body.String(), "\nprocess_cpu_seconds_total ")
	require.Contains(t, w.Header().Get("Content-Type"), "text/plain")
}

func TestRoute_CountingDoesNotAllocate(t *testing.T) {
	s := metrics.New("1", "c", "go")
	r := s.Sync([]metrics.RouteKey{root}, nil)[0]
	r.Answered(200)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		r.Answered(200)
		r.Answered(204)
		r.Answered(-1)
		r.Head(time.Millisecond)
		r.ClientAborted()
		s.Unrouted().Head(time.Millisecond)
	}))
}

func TestSet_NothingIsLostBetweenGoroutines(t *testing.T) {
	s := metrics.New("1", "c", "go")
	r := s.Sync([]metrics.RouteKey{root}, ups("a:80"))[0]
	const goroutines, each = 8, 5000
	var counting, others sync.WaitGroup
	stop := make(chan struct{})
	for range goroutines {
		counting.Go(func() {
			for i := range each {
				r.Answered(200 + 100*(i%4))
				r.Head(time.Microsecond)
				r.ClientAborted()
			}
		})
	}
	for range 2 { // reloads and scrapes meanwhile
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.Sync([]metrics.RouteKey{root, api}, ups("a:80", "b:80"))
					s.Connections(func() (int, int) { return 1, 1 })
					s.Reloaded(true, time.Now())
					w := httptest.NewRecorder()
					if s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil)); w.Code != 200 {
						t.Errorf("scrape during a reload: %s", w.Body)
					}
					s.Sync([]metrics.RouteKey{root}, ups("a:80"))
				}
			}
		})
	}
	counting.Wait()
	close(stop)
	others.Wait()
	for _, want := range []string{
		`ferryman_requests_total{route="/",status="200",upstream="a:80"} 10000`,
		`ferryman_requests_total{route="/",status="500",upstream="a:80"} 10000`,
		`ferryman_client_aborts_total{route="/",upstream="a:80"} 40000`,
		`ferryman_request_duration_seconds_count{route="/",upstream="a:80"} 40000`,
	} {
		requireLine(t, s, want)
	}
}

func BenchmarkRoute_Answered(b *testing.B) {
	r := metrics.New("1", "c", "go").Sync([]metrics.RouteKey{root}, nil)[0]
	b.ReportAllocs()
	for b.Loop() {
		r.Answered(200)
	}
}

func BenchmarkRoute_Head(b *testing.B) {
	r := metrics.New("1", "c", "go").Sync([]metrics.RouteKey{root}, nil)[0]
	b.ReportAllocs()
	for b.Loop() {
		r.Head(300 * time.Microsecond)
	}
}
