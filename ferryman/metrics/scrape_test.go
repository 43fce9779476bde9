package metrics_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/metrics"
)

// large is a set of a thousand routes that have all been used.
func large() *metrics.Set {
	s := metrics.New("1", "c", "go")
	var keys []metrics.RouteKey
	var addrs []string
	for i := range 1000 {
		addr := "10.0.0.1:" + strconv.Itoa(10_000+i)
		keys = append(keys, metrics.RouteKey{Prefix: "/service/" + strconv.Itoa(i), Upstream: addr})
		addrs = append(addrs, addr)
	}
	for _, r := range s.Sync(keys, ups(addrs...)) {
		r.Answered(200)
		r.Head(time.Millisecond)
	}
	return s
}

// pipes is a listener without a buffer: what is not read is not taken either.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, open := <-p; open {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// heap is what is alive.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Case 293: 40 scrapes at once took 290 MB here, and 22 with the limit; of clients that read no further than the status, and so hold what they have.
// Each handler is one of its own, as an embedder may have them.
func TestHandler_FewScrapesAtATimeHaveLittleMemory(t *testing.T) {
	const scrapes = 40
	s := large()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.Handler().ServeHTTP(w, r) })}
	l := make(pipes)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	before := heap()
	var clients [scrapes]net.Conn
	statuses := map[int]int{}
	for i := range clients {
		var far net.Conn
		clients[i], far = net.Pipe()
		l <- far
		clients[i].SetDeadline(time.Now().Add(30 * time.Second))
		_, err := clients[i].Write([]byte("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"))
		require.NoError(t, err)
		line := make([]byte, len("HTTP/1.1 200"))
		_, err = clients[i].Read(line)
		require.NoError(t, err)
		status, err := strconv.Atoi(string(line[9:]))
		require.NoError(t, err)
		statuses[status]++
	}
	taken := int64(heap()) - int64(before)
	for _, c := range clients {
		c.Close()
	}
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	t.Logf("%v, %.1f MB", statuses, float64(taken)/1e6)
	require.Equal(t, map[int]int{200: 3, 503: scrapes - 3}, statuses)
	require.Less(t, taken, int64(50<<20))
}

// Case 293: who does not read on gives the place back.
func TestHandler_ScrapeThatIsNotReadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := large()
		server := &http.Server{Handler: s.Handler()}
		l := make(pipes)
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		ask := func() (c net.Conn, status string) {
			c, far := net.Pipe()
			l <- far
			io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
			line := make([]byte, len("HTTP/1.1 200"))
			_, err := io.ReadFull(c, line)
			require.NoError(t, err)
			return c, string(line[9:])
		}
		var stalled []net.Conn
		for range 3 {
			c, status := ask()
			require.Equal(t, "200", status)
			stalled = append(stalled, c)
		}
		c, status := ask()
		require.Equal(t, "503", status)
		c.Close()
		<-time.After(11 * time.Second)
		for _, c := range stalled {
			_, err := io.ReadAll(c)
			require.NoError(t, err, "closed")
		}
		c, status = ask()
		require.Equal(t, "200", status)
		begun := time.Now()
		resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader("HTTP/1.1 200"), c)), nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		<-time.After(time.Minute) // the limit of one request is not that of the next
		io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
		line := make([]byte, len("HTTP/1.1 200"))
		_, err = io.ReadFull(c, line)
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(begun))
		c.Close()
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}

// The same at full speed, where garbage counts as well: 360 MB, and 30.
func TestHandler_ManyScrapesAtOnceMakeLittleGarbage(t *testing.T) {
	s := large()
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	before := heap()
	var asking sync.WaitGroup
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(time.Millisecond):
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
	}()
	for range 40 {
		asking.Go(func() {
			resp, err := http.Get(server.URL)
			if err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	asking.Wait()
	close(stop)
	most := int64(<-peak) - int64(before)
	t.Logf("%.1f MB", float64(most)/1e6)
	require.Less(t, most, int64(90<<20))
}
