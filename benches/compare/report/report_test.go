package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/benches/compare/load"
	"github.com/Bunty9/ferryman/benches/compare/report"
	"github.com/Bunty9/ferryman/loadtest/machine"
)

var update = flag.Bool("update", false, "write the golden files anew")

// block is one second at 1000 requests a second.
func block(name, against string, pair int, cpuUS float64, latency *load.Latency) report.Block {
	return report.Block{
		Contender: name, Against: against, Pair: pair, WindowS: 2, CPUS: cpuUS * 2 * 1000 / 1e6, PSSKiB: 2048,
		Outcome: load.Outcome{Requests: 2000, Right: 2000, RightRate: 1000, Latency: latency},
	}
}

// sample is a run in which ferryman costs 9 us and NGINX 10, on a machine that becomes slower.
func sample() *report.Run {
	r := &report.Run{
		Schema: report.Schema, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Commit: "abc", Reference: "ferryman", Pairs: 4, Tracer: "perf",
		Machine:   machine.Environment{Processor: "A <fast> one", Processors: 2, MemoryMiB: 4096, Kernel: "6.1", Go: "go1.26"},
		LoadAfter: 2.5,
		Contenders: []report.Contender{
			{Name: "direct", Title: "no proxy"}, {Name: "ferryman", Title: "ferryman", Process: true},
			{Name: "nginx", Title: "NGINX", Version: "1.22", Process: true},
			{Name: "haproxy", Title: "HAProxy", Process: true, Missing: "not found: apt-get install haproxy"},
		},
	}
	closed := report.Section{Workload: "small", Title: "GET", Load: "saturated", Connections: 256}
	fixed := report.Section{Workload: "h2", Title: "GET h2", Load: "heavy", Rate: 1000, Connections: 25, Streams: 8, Absent: map[string]string{"direct": "speaks no TLS"}}
	for pair := range 4 {
		slower := 1 + float64(pair)/10
		quick, slow := &load.Latency{P50: 900, P99: 2000}, &load.Latency{P50: 1000, P99: 2500}
		closed.Blocks = append(closed.Blocks, block("ferryman", "nginx", pair, 9*slower, nil), block("nginx", "ferryman", pair, 10*slower, nil),
			block("direct", "ferryman", pair, 0, nil))
		fixed.Blocks = append(fixed.Blocks, block("ferryman", "nginx", pair, 18*slower, quick), block("nginx", "ferryman", pair, 20*slower, slow))
		closed.Probes = append(closed.Probes, report.Probe{Contender: "ferryman", Kind: report.SystemCalls, Requests: 1000, Count: 4100 + float64(pair)},
			report.Probe{Contender: "ferryman", Kind: report.Allocations, Requests: 1000, Count: 10})
	}
	r.Sections = []report.Section{closed, fixed}
	return r
}

func TestSum_RatiosComeFromPairsAndSoIgnoreASlowerMachine(t *testing.T) {
	r := sample()
	r.Sum()
	rows := r.Sections[0].Rows
	require.Len(t, rows, 4)
	ferryman, nginx := rows[1], rows[2]
	require.InDelta(t, 9*1.15, ferryman.CPU.Median, 1e-9)
	require.Greater(t, ferryman.CPU.High-ferryman.CPU.Low, 1.0) // the machine shows here
	require.InDelta(t, 0.9, nginx.CPURatio.Low, 1e-9)           // and not here
	require.InDelta(t, 0.9, nginx.CPURatio.High, 1e-9)
	require.Equal(t, 4, nginx.CPURatio.N)
	require.InDelta(t, 4.1015, ferryman.SystemCalls.Median, 1e-9)
	require.InDelta(t, 0.01, ferryman.Allocations.Median, 1e-9)
	require.InDelta(t, 2, ferryman.MemoryMiB.Median, 1e-9)
	require.Zero(t, ferryman.P99.N, "a closed loop has no latency")
	require.InDelta(t, -500, r.Sections[1].Rows[2].AddedP99.Median, 1e-9)
	require.Zero(t, rows[0].CPU.N, "nothing to read where there is no process")
	require.Equal(t, "not found: apt-get install haproxy", rows[3].Note)
	require.Equal(t, "speaks no TLS", r.Sections[1].Rows[0].Note)
}

func TestSum_ABlockThatIsRefusedTakesItsPairAlong(t *testing.T) {
	r := sample()
	r.Sections[0].Blocks[1].Refused = "12 answers were wrong\n(status)"
	r.Sum()
	nginx := r.Sections[0].Rows[2]
	require.Equal(t, 3, nginx.CPURatio.N)
	require.Equal(t, 3, nginx.Blocks)
	require.Equal(t, "1 blocks not counted: 12 answers were wrong (status)", nginx.Note)
}

func TestSum_SaysWhereTheGeneratorWasLateOrOthersTookTime(t *testing.T) {
	r := sample()
	r.Sections[1].Blocks[0].Outcome.LagP99 = 1500
	r.Sections[1].Blocks[2].Repeated = 2
	r.Sections[1].Blocks[4].ForeignShare = 0.2
	r.Sections[1].Blocks[6].StolenShare = 0.02
	r.Sections[0].Blocks[0].Outcome.LagP99 = 1500 // a closed loop has no schedule to be late for
	r.Sum()
	require.Equal(t, "2 of 4 blocks disturbed; generator late in 1 of 4 blocks; 2 blocks repeated", r.Sections[1].Rows[1].Note)
	require.Empty(t, r.Sections[0].Rows[1].Note)
}

func TestMarkdown_LooksLikeTheGoldenFile(t *testing.T) {
	r := sample()
	r.Sum()
	var got bytes.Buffer
	require.NoError(t, r.WriteMarkdown(&got))
	const golden = "testdata/report.md"
	if *update {
		require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

func TestMarkdown_EveryRowHasAsManyCellsAsItsHead(t *testing.T) {
	r := sample()
	r.Contenders[3].Missing = "ended at once: a | b\nc"
	r.Sum()
	var got bytes.Buffer
	require.NoError(t, r.WriteMarkdown(&got))
	cells := 0
	for line := range strings.Lines(got.String()) {
		switch n := strings.Count(line, "|"); {
		case !strings.HasPrefix(line, "|"):
			cells = 0
		case cells == 0:
			cells = n
		default:
			require.Equal(t, cells, n, line)
		}
	}
}

func TestSVG_IsWellFormedAndHasABarForEachThatWasMeasured(t *testing.T) {
	r := sample()
	r.Sum()
	var got bytes.Buffer
	require.NoError(t, r.WriteSVG(&got))
	bars := 0
	for d := xml.NewDecoder(bytes.NewReader(got.Bytes())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "path" {
			bars++
		}
	}
	require.Equal(t, 4, bars)
}

func TestJSON_ComesBackAsItWas(t *testing.T) {
	r := sample()
	r.Sum()
	var text bytes.Buffer
	require.NoError(t, r.WriteJSON(&text))
	back, err := report.ReadJSON(&text)
	require.NoError(t, err)
	require.Equal(t, r, back)
}

func TestWrite_ReportsATroubledWriter(t *testing.T) {
	r := sample()
	r.Sum()
	require.ErrorIs(t, r.WriteMarkdown(full{}), errFull)
	require.ErrorIs(t, r.WriteSVG(full{}), errFull)
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
