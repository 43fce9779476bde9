//go:build unix

package labenv

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Kinds are the faults: kill and pause hit the program from outside, slow and errors are its own doing.
var Kinds = []string{"kill", "pause", "slow", "errors"}

// Bodies of the echo's PUT /fault, by kind.
var faultBodies = map[string]string{"slow": `{"latency":"3s"}`, "errors": `{"error_rate":1}`}

// Fault brings one of Kinds upon an upstream. For slow and errors a body other than "" is sent instead of
// the usual one.
func (s *State) Fault(ctx context.Context, kind, upstream, body string) error {
	e, err := s.Echo(upstream)
	if err != nil {
		return err
	}
	if !slices.Contains(Kinds, kind) {
		return fmt.Errorf("there is no fault %q: there are %s", kind, strings.Join(Kinds, ", "))
	}
	if usual, ok := faultBodies[kind]; ok {
		if body == "" {
			body = usual
		}
		return e.setFault(ctx, body)
	}
	if s.Mode == ModeCompose {
		return s.hitContainer(ctx, kind, e)
	}
	p := s.Process("echo-" + upstream)
	if kind == "kill" {
		return p.kill(ctx)
	}
	return p.pause(ctx)
}

func (s *State) hitContainer(ctx context.Context, kind string, e Echo) error {
	id, err := s.Compose.Container(ctx, "echo-"+e.Name)
	if err == nil {
		_, err = docker(ctx, nil, kind, id)
	}
	return err
}

// setFault sets the fault of an echo, or heals it where body is "".
func (e Echo) setFault(ctx context.Context, body string) error {
	method := http.MethodPut
	if body == "" {
		method = http.MethodDelete
	}
	status, text, err := Ask(ctx, method, e.Admin+"/fault", body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("echo-%s refuses: %s", e.Name, strings.TrimSpace(text))
	}
	return err
}

// Heal undoes every fault of an upstream and returns when the upstream answers. State must be saved after
// it, as a process that was started again has another id.
func (s *State) Heal(ctx context.Context, upstream string) error {
	e, err := s.Echo(upstream)
	if err != nil {
		return err
	}
	if s.Mode == ModeCompose {
		err = s.healContainer(ctx, e)
	} else {
		err = s.healProcess(e)
	}
	if err != nil {
		return err
	}
	return Until(ctx, 30*time.Second, "echo-"+upstream, func(ctx context.Context) error { return e.setFault(ctx, "") })
}

func (s *State) healProcess(e Echo) error {
	p := s.Process("echo-" + e.Name)
	if p.Alive() {
		return p.signal(syscall.SIGCONT)
	}
	return p.launch()
}

func (s *State) healContainer(ctx context.Context, e Echo) error {
	id, err := s.Compose.Container(ctx, "echo-"+e.Name)
	if err != nil {
		return err
	}
	status, err := docker(ctx, nil, "container", "inspect", "--format", "{{.State.Status}}", id)
	if err != nil {
		return err
	}
	switch strings.TrimSpace(status) {
	case "paused":
		_, err = docker(ctx, nil, "unpause", id)
	case "running":
	default:
		_, err = docker(ctx, nil, "start", id)
	}
	return err
}

// Condition tells in a word or two how an echo fares: ok, killed, paused, no answer, or its fault.
func (s *State) Condition(ctx context.Context, e Echo) string {
	if p := s.Process("echo-" + e.Name); p != nil && !p.Alive() {
		return "killed"
	}
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	status, text, err := Ask(ctx, http.MethodGet, e.Admin+"/fault", "")
	if err != nil || status != http.StatusOK {
		return "no answer"
	}
	return describeFault(text)
}
