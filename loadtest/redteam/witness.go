package redteam

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// A bystander is a process of its own, with an upstream of its own, so that it does not wait for processors of
// the attackers' process. It prints its upstream's address, is told ferryman's, asks until standard input ends, and
// then prints what it has seen.

// seen is what a bystander tells at its end.
type seen struct {
	Right   int64 // answers
	Samples []sample
	Faults  int64
	First   []string
}

// Bystand is the bystander's program.
func Bystand(in io.Reader, out io.Writer) error {
	f := &faults{}
	up, err := newUpstream(f, bystanderMood)
	if err != nil {
		return err
	}
	defer up.close()
	fmt.Fprintln(out, up.addr(bystanderMood.name))
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return errors.Join(lines.Err(), errors.New("no address to ask"))
	}
	addr, protocol, _ := strings.Cut(lines.Text(), " ")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b := &bystander{r: &rig{ctx: ctx, addr: addr, secure: protocol == "tls", faults: f}}
	over := make(chan struct{})
	go func() {
		defer close(over)
		b.askAll()
	}()
	_, _ = io.Copy(io.Discard, in)
	cancel()
	<-over
	return json.NewEncoder(out).Encode(seen{b.right.Load(), b.samples, f.n.Load(), f.first})
}

// witness is a bystander's process as the attack's side has it.
type witness struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// call starts a bystander, and returns where its upstream listens.
func (t Target) call() (w *witness, upstream string, err error) {
	w = &witness{cmd: exec.Command(t.Self, "bystander")}
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, "", err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		return nil, "", err
	}
	line, err := w.out.ReadString('\n')
	return w, strings.TrimSpace(line), err
}

func (w *witness) ask(addr string, secure bool) error {
	protocol := "plain"
	if secure {
		protocol = "tls"
	}
	_, err := fmt.Fprintln(w.in, addr, protocol)
	return err
}

// dismiss ends the bystander and returns what it has seen.
func (w *witness) dismiss() (s seen, err error) {
	w.in.Close()
	late := time.AfterFunc(2*answerLimit, func() { _ = w.cmd.Process.Kill() })
	defer late.Stop()
	err = json.NewDecoder(w.out).Decode(&s)
	return s, errors.Join(err, w.cmd.Wait())
}
