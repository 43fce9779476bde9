//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// The budgets. Latencies are response times through the proxy, on a machine that can keep the rate.
const (
	budgetP50      = time.Millisecond
	budgetP99      = 5 * time.Millisecond
	budgetP999     = 20 * time.Millisecond
	budgetFailover = 5 * time.Second
	budgetMemory   = 20 << 20

	usualRate = 5000
	leastRate = 200
)

// bench is a lab of its own beside a generator.
type bench struct {
	l               *lab
	s               *labenv.State
	g               generator // of constant rates
	loadtest        generator // has marks
	direct, proxied string    // base URLs as the generator sees them
	control         string    // as this program sees it
	controlBind     string    // as the generator sees it
	smoke           bool
	rows            []row
}

// row is a line of the result.
type row struct {
	what, measured, budget string
	verdict                verdict
}

type verdict string

const (
	pass    verdict = "PASS"
	fail    verdict = "FAIL"
	invalid verdict = "INVALID"
	skipped verdict = "SKIP"
)

// bench measures in a lab of its own and asserts the budgets.
func (l *lab) bench(ctx context.Context, _ []string) error {
	b := &bench{l: l, smoke: l.env("SMOKE") != ""}
	rows, err := b.run(ctx)
	if err != nil {
		return err
	}
	return l.table(rows, b.smoke)
}

// run starts the lab, measures and ends it.
func (b *bench) run(ctx context.Context) (rows []row, err error) {
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.s.End(context.WithoutCancel(ctx))) }()
	for _, step := range []func(context.Context) error{b.latency, b.failover, b.memory} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return b.rows, nil
}

func (b *bench) start(ctx context.Context) error {
	ports, err := labenv.FreePorts()
	if err != nil {
		return err
	}
	control := ports.Grafana // unused here, and free
	ports.Grafana = 0
	b.control = "http://127.0.0.1:" + strconv.Itoa(control)
	switch mode := b.l.or("MODE", "native"); mode {
	case "native":
		err = b.startNative(ctx, ports, control)
	case "compose":
		err = b.startCompose(ctx, ports, control)
	default:
		err = fmt.Errorf("MODE is %q: it must be native or compose", mode)
	}
	if err != nil {
		return err
	}
	return b.choose(ctx)
}

func (b *bench) startNative(ctx context.Context, ports labenv.Ports, control int) error {
	bin, err := labenv.Build(ctx, b.l.root, b.l.binDir(), "")
	if err != nil {
		return err
	}
	dir := filepath.Join(labenv.Dir(b.l.root), "bench")
	if b.s, err = labenv.StartNative(ctx, b.l.root, labenv.Native{Dir: dir, Binaries: bin, Ports: ports}); err != nil {
		return err
	}
	b.direct, b.proxied = b.s.Echoes[0].Data, b.s.Proxy
	b.controlBind = "127.0.0.1:" + strconv.Itoa(control)
	b.loadtest = generator{"loadtest", func(ctx context.Context, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, bin.Loadtest, args...)
	}}
	return nil
}

func (b *bench) startCompose(ctx context.Context, ports labenv.Ports, control int) error {
	flavour, err := labenv.ComposeFlavour(ctx)
	if err != nil {
		return err
	}
	images, err := labenv.BuildImages(ctx, b.l.root, b.l.binDir())
	if err != nil {
		return err
	}
	c := labenv.Compose{
		Flavour: flavour, Root: b.l.root, Project: "ferryman-bench", Files: []string{"core.yml"}, Env: append(images.Env(), ports.Env()...),
	}
	if b.s, err = labenv.StartCompose(ctx, c, ports); err != nil {
		return err
	}
	b.direct, b.proxied, b.controlBind = "http://echo-a:8000", "http://ferryman:8080", ":9200"
	publish := "127.0.0.1:" + strconv.Itoa(control) + ":9200"
	with := *b.s.Compose
	with.Files = []string{"core.yml", "bench.yml"}
	b.loadtest = generator{"loadtest", func(ctx context.Context, args ...string) *exec.Cmd {
		return with.Command(ctx, append([]string{"run", "--rm", "-T", "--no-deps", "--publish", publish, "loadtest"}, args...)...)
	}}
	return nil
}

// choose takes the generator of constant rates that was asked for.
func (b *bench) choose(_ context.Context) error {
	switch name := b.l.or("GENERATOR", "loadtest"); name {
	case "loadtest":
		b.g = b.loadtest
		return nil
	case "wrk2":
		bin := b.l.env("WRK2_BIN")
		if bin == "" || b.s.Mode != labenv.ModeNative {
			return errors.Join(errors.New("GENERATOR=wrk2 needs a wrk2 of yours in WRK2_BIN, and MODE=native: none is built or shipped here"),
				b.s.End(context.Background()))
		}
		b.g = generator{"wrk2", func(ctx context.Context, args ...string) *exec.Cmd { return exec.CommandContext(ctx, bin, args...) }}
		return nil
	default:
		return errors.Join(fmt.Errorf("GENERATOR is %q: it must be loadtest or wrk2", name), b.s.End(context.Background()))
	}
}

func (b *bench) add(what, measured, budget string, v verdict) {
	b.rows = append(b.rows, row{what, measured, budget, v})
}

func judge(kept bool) verdict {
	if kept {
		return pass
	}
	return fail
}

// memory is the proxy's, after all that load.
func (b *bench) memory(ctx context.Context) error {
	page, err := labenv.ReadPage(ctx, b.s.Metrics+"/metrics")
	if err != nil {
		return err
	}
	budget := fmt.Sprintf("< %d MB", budgetMemory>>20)
	rss := page["process_resident_memory_bytes"]
	if rss == 0 {
		b.add("memory of ferryman", "this system does not tell", budget, skipped)
		return nil
	}
	b.add("memory of ferryman (RSS)", fmt.Sprintf("%.1f MB", rss/(1<<20)), budget, judge(rss < budgetMemory))
	return nil
}

// cores is what a rate on this machine has to be read with.
func cores() string {
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = strings.Fields(string(text))[0]
	}
	return fmt.Sprintf("%d cores for proxy, upstream and generator together; load average at the start %s", runtime.NumCPU(), load)
}
