package engine

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// every requests of a run get this answer, so the outcome of all 100 is known.
func TestRun_PutsEveryOutcomeIntoItsClass(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\n"
	for _, tc := range []struct {
		name   string
		do     answer
		change func(*Plan)
		want   string
	}{
		{name: "ok", do: respond(okAnswer), want: "ok 100"},
		{name: "chunked", do: respond(head + "Transfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\nX: y\r\n\r\n"), want: "ok 100"},
		{name: "byte by byte", do: slowly(head+"Content-Length: 2\r\n\r\n", "ok"), want: "ok 100"},
		{name: "large", do: respond(head + "Content-Length: 300000\r\n\r\n" + strings.Repeat("x", 300000)), want: "ok 100"},
		{name: "right body", do: respond(okAnswer), change: expect("ok"), want: "ok 100"},
		{name: "wrong body", do: respond(okAnswer), change: expect("other"), want: "wrong_body 100"},
		{name: "closes as announced", do: closing(head + "Connection: close\r\nContent-Length: 2\r\n\r\nok"), want: "ok 100"},
		{name: "closes to end the body", do: closing(head + "\r\nok"), change: expect("ok"), want: "ok 100"},
		{name: "status", do: respond("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"), want: "status 100"},
		{name: "redirect", do: respond("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"), want: "ok 100"},
		{name: "wanted status", do: respond("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"), change: func(p *Plan) { p.Targets[0].Status = 404 }, want: "ok 100"},
		{name: "other status than wanted", do: respond(okAnswer), change: func(p *Plan) { p.Targets[0].Status = 204 }, want: "status 100"},
		{name: "the proxy's refusal", do: respond("HTTP/1.1 503 X\r\nRetry-After: 1\r\nContent-Length: 21\r\n\r\nupstream unavailable\n"), want: "refused 100"},
		{name: "the upstream's 503", do: respond("HTTP/1.1 503 X\r\nContent-Length: 20\r\n\r\nupstream unavailable"), want: "status 100"},
		{name: "truncated body", do: closing(head + "Content-Length: 5\r\n\r\nabc"), want: "truncated 100"},
		{name: "truncated chunks", do: closing(head + "Transfer-Encoding: chunked\r\n\r\n5\r\nabc"), want: "truncated 100"},
		{name: "truncated head", do: closing(head + "Conte"), want: "truncated 100"},
		{name: "closes without an answer", do: closing(""), want: "reset 100"},
		{name: "reset", do: reset, want: "reset 100"},
		{name: "not HTTP", do: respond("220 mail.example ESMTP\r\n\r\n"), want: "malformed 100"},
		{name: "more than it said", do: respond(okAnswer + "!"), want: "malformed 100"},
		{name: "never", do: never, change: func(p *Plan) { p.Timeout, p.Connections = 300*time.Millisecond, 100 }, want: "timeout 100"},
		{name: "in time", do: after(30*time.Millisecond, okAnswer), change: func(p *Plan) { p.Connections = 100 }, want: "ok 100"},
		{name: "connection per request", do: closing(head + "Connection: close\r\nContent-Length: 2\r\n\r\nok"), change: func(p *Plan) { p.NoKeepAlive = true }, want: "ok 100"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			executors(t, func(t *testing.T, executor string) {
				p := plan(serve(t, tc.do).url())
				p.Executor, p.Rate, p.Duration, p.Timeout = executor, 1000, 100*time.Millisecond, 20*time.Second
				if tc.change != nil {
					tc.change(&p)
				}
				report := run(t, p)
				require.Equal(t, tc.want, classes(report.Total))
				require.EqualValues(t, 100, report.Planned)
				require.EqualValues(t, 100, report.Total.Response.Count, "every request is in the response times")
				require.Zero(t, report.Total.Unsent)
				require.Zero(t, report.Connections.Unsolicited)
			})
		})
	}
}

func expect(body string) func(*Plan) {
	return func(p *Plan) { p.Targets[0].Expect = []byte(body) }
}

func closing(raw string) answer {
	return func(c *net.TCPConn, _ int64) bool {
		_, _ = io.WriteString(c, raw)
		return false
	}
}

func reset(c *net.TCPConn, _ int64) bool {
	_ = c.SetLinger(0)
	return false
}

func never(c *net.TCPConn, _ int64) bool {
	_, _ = io.Copy(io.Discard, c) // until the client gives up
	return false
}

func after(d time.Duration, raw string) answer {
	return func(c *net.TCPConn, n int64) bool {
		pauseFor(d)
		return respond(raw)(c, n)
	}
}

// slowly sends the head byte by byte and the body apart from it.
func slowly(head, body string) answer {
	return func(c *net.TCPConn, _ int64) bool {
		for i := range len(head) {
			if _, err := c.Write([]byte{head[i]}); err != nil {
				return false
			}
		}
		_, err := io.WriteString(c, body)
		return err == nil
	}
}

func TestRun_ARefusalThatTakesTooLongIsBad(t *testing.T) {
	refusal := "HTTP/1.1 503 X\r\nRetry-After: 1\r\nContent-Length: 21\r\n\r\nupstream unavailable\n"
	executors(t, func(t *testing.T, executor string) {
		p := plan(serve(t, after(30*time.Millisecond, refusal)).url())
		p.Executor, p.Connections, p.RefusalLimit = executor, 40, 5*time.Millisecond
		report := run(t, p)
		require.Equal(t, "refused 100", classes(report.Total))
		require.EqualValues(t, 100, report.Total.Bad)
		require.InDelta(t, 0, *report.Total.FirstBadS, 1e-9)
		require.InDelta(t, 0.2475, *report.Total.LastBadS, 1e-9, "by intended time")
	})
}

func TestRun_AConnectionClosedWhileIdleIsNoError(t *testing.T) {
	if !haveLoops {
		return // the goroutine executor says that it does not watch idle connections
	}
	s := serve(t, closing(okAnswer)) // no Connection: close, so the client learns of it afterwards
	p := plan(s.url())
	p.Rate, p.Duration = 40, time.Second // 100 ms between two requests of a connection
	report := run(t, p)
	// On a busy machine the server may close late, when the next request is on its way.
	require.EqualValues(t, 40, report.Total.Classes["ok"]+report.Total.Classes["reset"])
	require.GreaterOrEqual(t, report.Total.Classes["ok"], int64(20))
	require.GreaterOrEqual(t, s.conns.Load(), report.Total.Classes["ok"], "each answer had a connection of its own")
}

func TestRun_BytesThatNobodyAskedForAreCounted(t *testing.T) {
	if !haveLoops {
		return // as above
	}
	s := serve(t, func(c *net.TCPConn, n int64) bool {
		_, _ = io.WriteString(c, okAnswer)
		pauseFor(5 * time.Millisecond)
		return respond(okAnswer)(c, n)
	})
	p := plan(s.url())
	p.Rate, p.Duration = 40, time.Second
	report := run(t, p)
	// On a busy machine the surplus may be read together with the answer, and then spoils it.
	require.EqualValues(t, 40, report.Total.Classes["ok"]+report.Total.Classes["malformed"])
	require.GreaterOrEqual(t, report.Connections.Unsolicited, report.Total.Classes["ok"]-8, "but for the last of each connection")
}

// A server that has seen enough answers before the body is through, and takes no more of it.
func TestRun_AnAnswerBeforeTheRequestIsThroughCounts(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 1)) // the head has begun to come
				_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
				defer c.Close()
			}
		}()
		p := plan("http://" + l.Addr().String() + "/")
		p.Executor, p.Rate, p.Connections, p.Timeout = executor, 8, 2, 500*time.Millisecond
		p.Targets[0].Body = make([]byte, 20<<20)
		report := run(t, p)
		if executor == Goroutines { // it writes first and reads then: it does not notice in time
			require.Equal(t, "timeout 2", classes(report.Total))
			return
		}
		require.Equal(t, "status 2", classes(report.Total))
		require.Equal(t, map[int]int64{413: 2}, report.Total.Statuses)
	})
}

func TestRun_ADeadTargetIsAConnectErrorPerRequest(t *testing.T) {
	executors(t, func(t *testing.T, executor string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		p := plan("http://" + l.Addr().String() + "/")
		p.Executor = executor
		died := make(chan error, 1)
		go func() { died <- acceptAndDie(l, p.Connections) }()
		report := run(t, p)
		require.NoError(t, <-died)
		require.EqualValues(t, 100, report.Total.Classes["connect"]+report.Total.Classes["reset"])
		require.GreaterOrEqual(t, report.Total.Classes["connect"], int64(80))
	})
}

// acceptAndDie takes n connections, then closes everything.
func acceptAndDie(l net.Listener, n int) error {
	var all []net.Conn
	for range n {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	err := l.Close()
	for _, c := range all {
		_ = c.Close()
	}
	return err
}
