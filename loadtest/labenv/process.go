//go:build unix

package labenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a program in the background. It outlives who started it.
type Process struct {
	Name string   `json:"name"`
	Args []string `json:"args"` // the program first
	Log  string   `json:"log"`
	PID  int      `json:"pid"`
	Born string   `json:"born"` // tells it from a later process with the same id
}

// launch starts p in a session of its own, so that a Ctrl-C for its starter does not reach it. What it
// prints is appended to p.Log.
func (p *Process) launch() error {
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(p.Args[0], p.Args[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.PID, p.Born = cmd.Process.Pid, born(cmd.Process.Pid)
	go reap(cmd)
	return nil
}

// reap collects the exit status while this program lives; nobody wants it, but a zombie would look alive.
func reap(cmd *exec.Cmd) { _ = cmd.Wait() }

// Alive reports whether the very process still exists. One that is stopped is alive.
func (p Process) Alive() bool { return p.PID > 0 && p.Born != "" && born(p.PID) == p.Born }

// born is when a process started, in any unit; "" where there is none or only a zombie.
func born(pid int) string {
	state, since := look(pid)
	if strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X") {
		return ""
	}
	return since
}

// look asks the system for the state of a process, such as S or T, and since when it exists. Both are empty
// if it does not.
func look(pid int) (state, since string) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err == nil {
		// The second field is the name in brackets and may hold anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		return fields[0], fields[19]
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return "", "" // there is a /proc, but not this process
	}
	out, _ := exec.Command("ps", "-o", "state=,lstart=", "-p", strconv.Itoa(pid)).Output()
	state, since, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return state, since
}

// pause stops p where it is and waits until it has stopped: a signal alone may let another answer through.
func (p Process) pause(ctx context.Context) error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return Until(ctx, 5*time.Second, "stop of "+p.Name, func(context.Context) error {
		if state, _ := look(p.PID); !strings.HasPrefix(state, "T") {
			return fmt.Errorf("process %d is in state %q", p.PID, state)
		}
		return nil
	})
}

// signal is nil if there is no such process any more.
func (p Process) signal(sig syscall.Signal) error {
	if !p.Alive() {
		return nil
	}
	if err := syscall.Kill(p.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s: %w", p.Name, err)
	}
	return nil
}

// kill ends p at once and waits until it is gone.
func (p Process) kill(ctx context.Context) error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	return p.gone(ctx, 5*time.Second)
}

// end asks p to end, and kills it if it does not within ten seconds.
func (p Process) end(ctx context.Context) error {
	if err := errors.Join(p.signal(syscall.SIGTERM), p.signal(syscall.SIGCONT)); err != nil {
		return err
	}
	if p.gone(ctx, 10*time.Second) == nil {
		return nil
	}
	return p.kill(ctx)
}

func (p Process) gone(ctx context.Context, limit time.Duration) error {
	return Until(ctx, limit, "end of "+p.Name, func(context.Context) error {
		if p.Alive() {
			return fmt.Errorf("process %d is still there", p.PID)
		}
		return nil
	})
}

// tail is the end of what p printed.
func (p Process) tail() string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return filepath.Base(p.Log) + ": " + strings.TrimSpace(string(text[max(0, len(text)-1500):]))
}
