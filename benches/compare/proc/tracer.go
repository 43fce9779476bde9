package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	allCalls = "raw_syscalls:sys_enter"
	oneCall  = "syscalls:sys_enter_"
)

// namedCalls are counted one by one where perf counts; the rest shows in the total only.
var namedCalls = []string{"recvfrom", "sendto", "read", "write", "readv", "writev", "recvmsg", "sendmsg", "epoll_wait",
	"epoll_pwait", "epoll_ctl", "accept4", "connect", "socket", "close", "futex", "nanosleep", "sched_yield", "ioctl", "getpid"}

// ErrNoTracer means that nothing on this machine counts system calls of other processes.
var ErrNoTracer = errors.New("no tracer: install perf or strace, and allow it to trace")

// Tracer counts system calls of running processes.
type Tracer struct {
	// Name is "perf" or "strace". Perf slows nothing down; strace slows its target a lot, which makes
	// an event loop find more work per turn and so need fewer calls.
	Name    string
	command []string // what it is run through, if not directly
}

// FindTracer returns the first tracer that works here, tried on a process of its own.
func FindTracer(ctx context.Context) (Tracer, error) {
	for _, t := range []Tracer{{Name: "perf"}, {Name: "strace"}, {Name: "strace", command: []string{"sudo", "-n"}}} {
		if t.works(ctx) {
			return t, nil
		}
	}
	return Tracer{}, ErrNoTracer
}

func (t Tracer) works(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	busy := exec.CommandContext(ctx, "sh", "-c", "while :; do sleep 0.01; done")
	busy.SysProcAttr = groupOfItsOwn()
	if busy.Start() != nil {
		return false
	}
	defer func() {
		killGroup(busy.Process.Pid)
		_ = busy.Wait() // it was killed
	}()
	nothing := func() (int64, error) { return 0, nil }
	c, _, err := t.Count(ctx, []int{busy.Process.Pid}, 200*time.Millisecond, nothing)
	return err == nil && c.Total > 0
}

// Count counts the system calls of pids for about window, and how much progress says was done
// meanwhile: progress is called when counting begins and when it ends.
func (t Tracer) Count(ctx context.Context, pids []int, window time.Duration, progress func() (int64, error)) (Calls, int64, error) {
	if t.Name == "perf" {
		return t.perf(ctx, pids, window, progress)
	}
	return t.strace(ctx, pids, window, progress)
}

func list(pids []int) string {
	var text []string
	for _, pid := range pids {
		text = append(text, strconv.Itoa(pid))
	}
	return strings.Join(text, ",")
}

// perf starts with its counters off and switches them by its control channel, so that the window is
// known to within a message.
func (t Tracer) perf(ctx context.Context, pids []int, window time.Duration, progress func() (int64, error)) (Calls, int64, error) {
	events := []string{allCalls}
	for _, name := range namedCalls {
		events = append(events, oneCall+name)
	}
	control, acks, err := twoPipes()
	if err != nil {
		return Calls{}, 0, err
	}
	defer control.close()
	defer acks.close()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "perf", "stat", "-x,", "-D", "-1", "--control", "fd:3,4", "-e", strings.Join(events, ","), "-p", list(pids))
	cmd.Stderr, cmd.ExtraFiles = &out, []*os.File{control.read, acks.write}
	if err := cmd.Start(); err != nil {
		return Calls{}, 0, err
	}
	control.read.Close()
	acks.write.Close()
	done, err := between(ctx, window, progress, func(order string) error {
		if _, err := io.WriteString(control.write, order+"\n"); err != nil {
			return err
		}
		answer := make([]byte, 16)
		_, err := acks.read.Read(answer)
		return err
	})
	_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself
	if waitErr := cmd.Wait(); err != nil {
		return Calls{}, 0, fmt.Errorf("perf: %w (%v): %s", err, waitErr, out.String())
	}
	c, err := parsePerf(out.String())
	return c, done, err
}

// between runs a window of counting and returns the progress made in it. Reading the progress takes a
// moment: with the first reading inside the window and the second behind it, that cancels out.
func between(ctx context.Context, window time.Duration, progress func() (int64, error), order func(string) error) (int64, error) {
	if err := order("enable"); err != nil {
		return 0, err
	}
	before, err := progress()
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, window); err != nil {
		return 0, err
	}
	if err := order("disable"); err != nil {
		return 0, err
	}
	after, err := progress()
	return after - before, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// strace is bounded by timeout(1), so that it also ends where it runs as another user. Counting
// begins with its first message.
func (t Tracer) strace(ctx context.Context, pids []int, window time.Duration, progress func() (int64, error)) (Calls, int64, error) {
	seconds := strconv.FormatFloat(window.Seconds(), 'f', 3, 64)
	args := append(append([]string{}, t.command...), "timeout", "-s", "INT", seconds, "strace", "-c", "-f")
	for _, pid := range pids {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	out := &announcer{first: make(chan struct{})}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = out
	if err := cmd.Start(); err != nil {
		return Calls{}, 0, err
	}
	ended := make(chan struct{})
	go reap(cmd, ended)
	select {
	case <-out.first:
	case <-ended:
		return Calls{}, 0, fmt.Errorf("strace: %s", out.text())
	}
	before, err := progress()
	<-ended
	if err != nil {
		return Calls{}, 0, err
	}
	after, err := progress()
	if err != nil {
		return Calls{}, 0, err
	}
	c, err := parseStrace(out.text())
	return c, after - before, err
}

// reap waits for a program whose exit status is of no interest.
func reap(cmd *exec.Cmd, ended chan<- struct{}) {
	_ = cmd.Wait()
	close(ended)
}

// announcer keeps what is written to it and tells of the first word.
type announcer struct {
	mu    sync.Mutex // guards buf
	buf   bytes.Buffer
	once  sync.Once
	first chan struct{}
}

func (a *announcer) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.once.Do(func() { close(a.first) })
	return a.buf.Write(p)
}

func (a *announcer) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.buf.String()
}

type pipe struct{ read, write *os.File }

func (p pipe) close() {
	p.read.Close() // harmless where it is closed already
	p.write.Close()
}

func twoPipes() (a, b pipe, err error) {
	if a.read, a.write, err = os.Pipe(); err != nil {
		return a, b, err
	}
	if b.read, b.write, err = os.Pipe(); err != nil {
		a.close()
	}
	return a, b, err
}
