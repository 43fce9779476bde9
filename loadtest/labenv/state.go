package labenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The modes of a lab.
const (
	ModeNative  = "native"
	ModeCompose = "compose"
)

// State is a lab that runs. URLs have no slash at their end and are empty for what is not there.
type State struct {
	Mode       string    `json:"mode"`
	Dir        string    `json:"dir"` // of configuration and logs; for containers, the folder that is mounted
	Started    time.Time `json:"started"`
	Proxy      string    `json:"proxy"`
	Metrics    string    `json:"metrics"`
	Prometheus string    `json:"prometheus,omitempty"`
	Grafana    string    `json:"grafana,omitempty"`
	Config     string    `json:"config"` // the file that ferryman watches
	Loadtest   string    `json:"loadtest,omitempty"`
	Echoes     []Echo    `json:"echoes"`
	Processes  []Process `json:"processes,omitempty"`
	Compose    *Compose  `json:"compose,omitempty"`
}

// Echo is an upstream of the lab.
type Echo struct {
	Name     string `json:"name"`     // a, b or c
	Upstream string `json:"upstream"` // host:port as ferryman knows it
	Admin    string `json:"admin"`    // URL
	Data     string `json:"data,omitempty"`
}

// ErrNone is the error of Load when no lab runs.
var ErrNone = errors.New("no lab is running: start one with `task demo`, or `task up` for containers")

// Dir is where the lab of a repository keeps its files.
func Dir(root string) string { return filepath.Join(root, ".lab") }

func stateFile(root string) string { return filepath.Join(Dir(root), "state.json") }

// Load reads the state of the lab that was started last and not ended.
func Load(root string) (*State, error) {
	text, err := os.ReadFile(stateFile(root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	s := &State{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s is broken: %w: run `task clean`", stateFile(root), err)
	}
	return s, nil
}

// Save writes s where Load finds it, in one step.
func (s *State) Save(root string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(Dir(root), 0o755); err != nil {
		return err
	}
	aside := stateFile(root) + ".new"
	if err := os.WriteFile(aside, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(aside, stateFile(root))
}

// Forget removes the state.
func Forget(root string) error {
	err := os.Remove(stateFile(root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Echo finds an upstream by its name.
func (s *State) Echo(name string) (Echo, error) {
	i := slices.IndexFunc(s.Echoes, func(e Echo) bool { return e.Name == name })
	if i < 0 {
		return Echo{}, fmt.Errorf("there is no upstream %q: say UPSTREAM=a, b or c", name)
	}
	return s.Echoes[i], nil
}

// Process finds a process by its name, such as ferryman or echo-a; nil where there is none.
func (s *State) Process(name string) *Process {
	for i := range s.Processes {
		if s.Processes[i].Name == name {
			return &s.Processes[i]
		}
	}
	return nil
}

// Ready waits until ferryman and every echo answer, and each route is served by its own echo.
func (s *State) Ready(ctx context.Context, limit time.Duration) error {
	err := Until(ctx, limit, "ferryman", func(ctx context.Context) error {
		return s.orDead("ferryman", Answers(ctx, s.Metrics+"/readyz"))
	})
	if err != nil {
		return err
	}
	for _, e := range s.Echoes {
		err := Until(ctx, limit, "echo-"+e.Name, func(ctx context.Context) error {
			return s.orDead("echo-"+e.Name, Answers(ctx, e.Admin+"/healthz"))
		})
		if err != nil {
			return err
		}
		err = Until(ctx, limit, "route /svc-"+e.Name, func(ctx context.Context) error {
			return Answers(ctx, s.Proxy+"/svc-"+e.Name+"/echo")
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// orDead turns err into a final one where the process of that name has ended.
func (s *State) orDead(name string, err error) error {
	p := s.Process(name)
	if err == nil || p == nil || p.Alive() {
		return err
	}
	return finalError{fmt.Errorf("it has ended; %s", p.tail())}
}

// End stops everything. It goes on after an error and returns all of them.
func (s *State) End(ctx context.Context) error {
	var errs []error
	for _, p := range slices.Backward(s.Processes) {
		errs = append(errs, p.end(ctx))
	}
	if s.Compose != nil {
		errs = append(errs, s.Compose.Down(ctx))
	}
	return errors.Join(errs...)
}
