package redteam

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Defence is a piece of ferryman's source that holds an attack off, and how to switch it off.
type Defence struct {
	Name     string
	File     string // within the module
	Old, New string // Old is there exactly once
	Attack   string // which is to get through then
	Engine   string // empty: loops
	Race     bool
}

// Proof has defences switched off one after another, each in a copy of the module, and the attack that is to notice.
type Proof struct {
	Module string // ferryman's folder
	Self   string
	Only   []string // defences by name, or attacks; empty: all
	Out    io.Writer

	with map[attempted]Breaches // what breaks although every defence is on
}

// attempted is an attack on a kind of ferryman.
type attempted struct {
	attack, engine string
	race           bool
}

// Run returns an error if a defence is not where it was, or nothing notices that it is off.
func (p *Proof) Run(ctx context.Context) error {
	p.with = make(map[attempted]Breaches)
	var errs []error
	ran := 0
	for _, d := range Defences {
		if len(p.Only) > 0 && !slices.Contains(p.Only, d.Name) && !slices.Contains(p.Only, d.Attack) {
			continue
		}
		ran++
		err := p.without(ctx, d)
		if err != nil {
			fmt.Fprintf(p.Out, "FAIL without %q: %v\n", d.Name, err)
			errs = append(errs, fmt.Errorf("%s: %w", d.Name, err))
		}
	}
	if ran == 0 {
		return fmt.Errorf("no defence is called %v", p.Only)
	}
	return errors.Join(errs...)
}

// without switches one off, and wants its attack to break a bound that it does not break otherwise.
func (p *Proof) without(ctx context.Context, d Defence) error {
	if d.Engine == "" {
		d.Engine = "loops"
	}
	key := attempted{d.Attack, d.Engine, d.Race}
	if _, known := p.with[key]; !known {
		broken, err := p.attempt(ctx, d, func(string) error { return nil })
		if err != nil {
			return err
		}
		if p.with[key] = broken; !broken.OK() {
			fmt.Fprintf(p.Out, "     %s breaks this with every defence on; what it breaks beyond counts:%s\n", d.Attack, broken.briefly())
		}
	}
	broken, err := p.attempt(ctx, d, d.switchOff)
	if err != nil {
		return err
	}
	more := broken.beyond(p.with[key])
	if more.OK() {
		return fmt.Errorf("%s does not notice", d.Attack)
	}
	fmt.Fprintf(p.Out, "ok   without %q, %s gets through:%s\n", d.Name, d.Attack, more.briefly())
	return nil
}

// attempt is what an attack breaks in a copy of the module that has been changed.
func (p *Proof) attempt(ctx context.Context, d Defence, change func(module string) error) (Breaches, error) {
	dir, err := os.MkdirTemp("", "redteam")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	module := filepath.Join(dir, "ferryman")
	if err := os.CopyFS(module, os.DirFS(p.Module)); err != nil {
		return nil, err
	}
	if err := change(module); err != nil {
		return nil, err
	}
	t := Target{Binary: filepath.Join(dir, "proxy"), Engine: d.Engine, Self: p.Self}
	if err := build(ctx, module, t.Binary, d.Race); err != nil {
		return nil, err
	}
	return through(ctx, d.Attack, t)
}

// through is what an attack, or a crossing test, breaks.
func through(ctx context.Context, name string, t Target) (Breaches, error) {
	if a, ok := Find(name); ok {
		defer leaveRoom()()
		v, err := Run(ctx, a, t)
		if err != nil {
			return nil, err
		}
		return v.Breaches, nil
	}
	for _, c := range Crossings {
		if c.Name == name {
			v, err := Cross(ctx, c, t)
			if err != nil {
				return nil, err
			}
			return v.Breaches, nil
		}
	}
	return nil, fmt.Errorf("no attack is called %s", name)
}

func (d Defence) switchOff(module string) error {
	file := filepath.Join(module, filepath.FromSlash(d.File))
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), d.Old); n != 1 {
		return fmt.Errorf("%s has %d times %q: see the table of defences", d.File, n, d.Old)
	}
	return os.WriteFile(file, []byte(strings.Replace(string(text), d.Old, d.New, 1)), 0o644)
}

// build builds a ferryman by the requirements of its own module.
func build(ctx context.Context, module, out string, race bool) error {
	args := []string{"build", "-buildvcs=false", "-o", out}
	if race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/ferryman")...)
	cmd.Dir, cmd.Env = module, append(os.Environ(), "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, said)
	}
	return nil
}
