package main

import (
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// demonstrate starts a demo on free ports.
func demonstrate(t *testing.T) (p *process, proxy, metrics string) {
	t.Helper()
	p = launch(t, "demo", "--bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0")
	return p, p.find(`proxy on (http://\S+),`), p.find(`metrics on (http://\S+)/metrics`)
}

func TestDemo_ShowsAnOutageAndItsEnd(t *testing.T) {
	t.Parallel()
	p, proxy, metrics := demonstrate(t)
	p.find("listening")
	for _, name := range []string{"a", "b", "c"} {
		status, body := get(t, proxy+"/svc-"+name+"/hello?x=1")
		require.Equal(t, 200, status)
		require.True(t, strings.HasPrefix(body, "upstream "+name+" saw:\nGET /svc-"+name+"/hello?x=1\nHost: "), body)
		require.Contains(t, body, "Via: 1.1 ferryman\n")
		require.Contains(t, body, "X-Forwarded-For: 127.0.0.1\n")
	}
	for round, act := range []func(verb string){
		func(verb string) {
			status, body := fetch("POST", metrics+"/demo/"+verb+"/a")
			require.Equal(t, 200, status, body)
		},
		func(verb string) {
			_, err := p.stdin.Write([]byte("  " + verb + "  a \n"))
			require.NoError(t, err)
		},
	} {
		act("stop")
		statuses := map[int]bool{}
		poll(t, 10*time.Second, "503", func() bool {
			status, _ := get(t, proxy+"/svc-a/x")
			statuses[status] = true
			return status == 503
		})
		require.True(t, statuses[502] || round > 0, statuses)
		status, _ := get(t, proxy+"/svc-b/x")
		require.Equal(t, 200, status, "another route noticed")
		_, text := get(t, metrics+"/demo/status")
		require.Contains(t, text, "a  stopped  circuit open\nb  running  circuit closed\n")
		act("start")
		poll(t, 10*time.Second, "recovery long before the cooldown is over", func() bool { status, _ := get(t, proxy+"/svc-a/x"); return status == 200 })
	}
	p.signal(os.Interrupt)
	require.Zero(t, p.status(5*time.Second))
}

func TestDemo_PromptHelpsAndQuits(t *testing.T) {
	t.Parallel()
	p, _, metrics := demonstrate(t)
	for line, want := range map[string]string{
		"status": `c  running  circuit closed`, "help": `commands: stop a`, "stop": `commands: stop a`, "stop x": `commands: stop a`,
		"dance a": `commands: stop a`, "stop b": `b is stopped`, "start b": `b is running`,
	} {
		before := len(p.output())
		_, err := p.stdin.Write([]byte(line + "\n\n"))
		require.NoError(t, err)
		poll(t, 5*time.Second, line, func() bool { return strings.Contains(p.output()[before:], want) })
	}
	for _, path := range []string{"/demo/stop/x", "/demo/dance/a"} {
		status, _ := fetch("POST", metrics+path)
		require.Equal(t, 404, status)
	}
	status, _ := fetch("GET", metrics+"/demo/stop/a")
	require.Equal(t, 404, status)
	_, err := p.stdin.Write([]byte("quit\n"))
	require.NoError(t, err)
	require.Zero(t, p.status(5*time.Second))
}

func TestDemo_EndOfInputLeavesItRunning(t *testing.T) {
	t.Parallel()
	p, proxy, _ := demonstrate(t)
	require.NoError(t, p.stdin.Close())
	used := func() time.Duration { // processor time so far
		text, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
		require.NoError(t, err)
		f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
		return time.Duration(atoi(t, f[12])+atoi(t, f[13])) * 10 * time.Millisecond
	}
	before := used()
	<-time.After(time.Second)
	require.Less(t, used()-before, 300*time.Millisecond, "it spins")
	status, _ := get(t, proxy+"/svc-a/")
	require.Equal(t, 200, status)
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.status(5*time.Second))
}

func TestDemo_BusyDefaultPortIsReplacedAndAskedForOneIsNot(t *testing.T) {
	// Whoever has the usual ports, the demo has to get by without them.
	for _, addr := range []string{"127.0.0.1:8080", "127.0.0.1:9090"} {
		if l, err := net.Listen("tcp", addr); err == nil {
			defer l.Close()
		}
	}
	p := launch(t, "demo")
	p.find(`127.0.0.1:8080 is in use, so this demo takes another port \(--bind asks for one\)`)
	p.find(`127.0.0.1:9090 is in use, so this demo takes another port \(--metrics-bind asks for one\)`)
	status, _ := get(t, p.find(`curl -i (http://\S+/svc-a/hello)`))
	require.Equal(t, 200, status)

	p = launch(t, "demo", "--bind", "127.0.0.1:8080", "--metrics-bind", "127.0.0.1:0")
	require.Equal(t, 1, p.status(5*time.Second))
	require.Contains(t, p.output(), "127.0.0.1:8080: address already in use: stop the other program or pass --bind")
}

func TestDemo_EndsWithItsTerminal(t *testing.T) {
	t.Parallel()
	p, _, _ := demonstrate(t)
	p.find("listening")
	p.signal(syscall.SIGHUP)
	require.Zero(t, p.status(5*time.Second))
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}
