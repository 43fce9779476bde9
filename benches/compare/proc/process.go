package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Process is a program that runs beside the harness, with what it prints kept in a file.
type Process struct {
	Name   string
	cmd    *exec.Cmd
	log    string
	exited chan struct{} // closed once it has been waited for
}

// Start starts cmd in a process group of its own. What it prints goes to NAME.log in dir. Stop must
// be called.
func Start(name string, cmd *exec.Cmd, dir string) (*Process, error) {
	p := &Process{Name: name, cmd: cmd, log: filepath.Join(dir, name+".log"), exited: make(chan struct{})}
	file, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the process has it
	cmd.SysProcAttr = groupOfItsOwn()
	if cmd.Stdout == nil {
		cmd.Stdout = file
	}
	cmd.Stderr = file
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go p.wait()
	return p, nil
}

func (p *Process) wait() {
	_ = p.cmd.Wait() // how it ended shows in its log
	close(p.exited)
}

// PID is that of the process itself; it may have children.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Alive reports whether the process has not ended yet.
func (p *Process) Alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Stop asks the process to end, and after grace ends it and whatever it left behind.
func (p *Process) Stop(grace time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	select {
	case <-p.exited:
	case <-time.After(grace):
	}
	killGroup(p.PID())
	<-p.exited
}

// Tail is the end of what the process printed.
func (p *Process) Tail() string {
	const most = 2000
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(b) > most {
		b = b[len(b)-most:]
	}
	return strings.TrimSpace(string(b))
}

// killGroup ends all processes of a group that this program made. There may be none left.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
