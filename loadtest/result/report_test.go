package result

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sampleReport is a run with a failure in the middle, marked.
func sampleReport(kind string) Report {
	c := NewCollector(layout(), 1)
	for i := range 1000 {
		at := time.Duration(i) * ms
		s := due(at, OK, 2*ms)
		switch {
		case i >= 300 && i < 320:
			s = due(at, Timeout, 200*ms)
			s.Status = 0
		case i >= 320 && i < 600:
			s = due(at, Refused, 2*ms)
			s.Status = 503
		}
		s.Target = i % 2
		c.Recorder(0).Record(s)
	}
	r := c.Report(kind, time.Second)
	r.Setup = Setup{Rate: 1000, Connections: 10, Loops: 1, DurationS: 1, WarmupS: 1, Mode: "pinned", Engine: "loops", Protocol: "http/1.1", KeepAlive: true, URLs: []string{"http://a/", "http://b/?x=<&>"}}
	r.Connections = ConnectionCounts{Asked: 10, Established: 10, Dials: 12, Unsolicited: 1}
	r.Marks = []Mark{{Name: "kill <a>", AtS: 0.3}, {Name: "before", AtS: -0.5}}
	r.Judge(Budgets{P99: 50 * ms, Errors: ErrorBudget{Any: true}}, Limits{})
	return r
}

func TestWriteText_ShowsTheTableOfWrk2AndTheRest(t *testing.T) {
	r, out := sampleReport(OpenLoop), &bytes.Buffer{}
	require.NoError(t, r.WriteText(out, Detailed))
	for _, want := range []string{
		"Running 1s test @ http://a/\n", "and @ http://b/?x=<&>\n", "  10 connections on 1 loops, 1000 requests/s, pinned, http/1.1\n",
		" 50.000%    2.00ms\n", " 99.000%  200.06ms\n", "100.000%  200.06ms\n", "Value\tPercentile\tTotalCount\t1/(1-Percentile)",
		"  response time     2.00ms  200.06ms", "  service time      1.00ms  199.04ms", "  send lag             0us",
		"  Outcomes: ok 700, refused 280, timeout 20\n", "  Statuses: 200 x 700, 503 x 280\n", "  Bad: 20, due from 0.300 s to 0.319 s\n",
		"  Unsolicited: 1 times", "  Mark: kill <a>", "  Target a\n    ok 350, refused 140, timeout 10\n", "1,000 requests in 1s, 9.77KB read\n",
		"Requests/sec:    1000.00\n", "  Budget: response p99", "MISSED\n", "Verdict: FAIL\n  - response p99 is 200.063ms, the budget is 50ms\n",
	} {
		require.Contains(t, out.String(), want)
	}
}

func TestWriteText_SaysOfAClosedLoopThatItIsCapacityOnly(t *testing.T) {
	r, out := sampleReport(Capacity), &bytes.Buffer{}
	require.NoError(t, r.WriteText(out, Detailed))
	require.Contains(t, out.String(), "CAPACITY ONLY")
	require.NotContains(t, out.String(), "Latency")
	require.NotContains(t, out.String(), "response time")
	require.Equal(t, Pass, r.Verdict.Outcome, "a latency budget is not judged")
}

func TestWriteJSON_HasUnitsInItsNamesAndNoLatenciesOfAClosedLoop(t *testing.T) {
	r, out := sampleReport(OpenLoop), &bytes.Buffer{}
	require.NoError(t, r.WriteJSON(out))
	var v map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &v))
	require.EqualValues(t, 1, v["schema"])
	total := v["total"].(map[string]any)
	require.EqualValues(t, 20, total["classes"].(map[string]any)["timeout"])
	require.EqualValues(t, 0, total["classes"].(map[string]any)["reset"], "absent outcomes are zero, not missing")
	require.InDelta(t, 2000, total["response"].(map[string]any)["p50_us"], 10)
	require.InDelta(t, 0.319, total["last_bad_s"], 1e-9)
	require.Equal(t, "FAIL", v["verdict"].(map[string]any)["outcome"])
	require.Contains(t, out.String(), "kill <a>", "no HTML escapes in JSON")

	again, drawn := Report{}, &bytes.Buffer{}
	require.NoError(t, json.Unmarshal(out.Bytes(), &again))
	require.Equal(t, r.Total, again.Total)
	require.NoError(t, again.WriteSVG(drawn), "others may draw what they have read")
	require.ErrorContains(t, again.WriteHGRM(drawn), "no histogram")

	r, out = sampleReport(Capacity), &bytes.Buffer{}
	require.NoError(t, r.WriteJSON(out))
	require.NotContains(t, out.String(), `"response"`)
}

func TestWriteSVG_IsWellFormedAndDrawsWhatHappened(t *testing.T) {
	r, out := sampleReport(OpenLoop), &bytes.Buffer{}
	require.NoError(t, r.WriteSVG(out))
	d := xml.NewDecoder(bytes.NewReader(out.Bytes()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}
	require.Equal(t, 2, strings.Count(out.String(), `class="bad"`), "a strip per target")
	require.Contains(t, out.String(), "kill &lt;a&gt;")
	require.NotContains(t, out.String(), ">before<", "a mark within the warm-up is not drawn")
	require.Contains(t, out.String(), "budget response p99 50ms")
	require.Contains(t, out.String(), "99.999%")
	require.Less(t, out.Len(), 100_000)

	capacity, only := sampleReport(Capacity), &bytes.Buffer{}
	require.NoError(t, capacity.WriteSVG(only))
	require.NotContains(t, only.String(), "Latency by percentile")
}

func TestWriteHTML_IsOneFileWithoutScripts(t *testing.T) {
	r, out := sampleReport(OpenLoop), &bytes.Buffer{}
	require.NoError(t, r.WriteHTML(out))
	require.Contains(t, out.String(), "<svg")
	require.Contains(t, out.String(), `<span class="FAIL">FAIL</span>`)
	require.Contains(t, out.String(), "http://b/?x=&lt;&amp;&gt;")
	for _, no := range []string{"<script", "src=", "href=", "@import"} {
		require.NotContains(t, out.String(), no)
	}
}

func TestWriteSVG_DrawsEvenAnEmptyRun(t *testing.T) {
	r, out := NewCollector(layout(), 1).Report(OpenLoop, 0), &bytes.Buffer{}
	require.NoError(t, r.WriteSVG(out))
	require.NotContains(t, out.String(), "NaN")
	require.NoError(t, r.WriteHTML(out))
	require.NoError(t, r.WriteHGRM(out))
}

// failing fails after n bytes.
type failing int

func (f *failing) Write(p []byte) (int, error) {
	if *f -= failing(len(p)); *f < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWriters_ReportAFullDisk(t *testing.T) {
	r := sampleReport(OpenLoop)
	text, svg, page, js := failing(100), failing(100), failing(100), failing(100)
	require.ErrorContains(t, r.WriteText(&text, Brief), "disk full")
	require.ErrorContains(t, r.WriteSVG(&svg), "disk full")
	require.ErrorContains(t, r.WriteHTML(&page), "disk full")
	require.ErrorContains(t, r.WriteJSON(&js), "disk full")
}
