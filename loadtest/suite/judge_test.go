package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/loadtest/result"
)

func sampleReport() *result.Report {
	last := 0.035
	return &result.Report{
		Targets: []result.Outcome{{LastBadS: &last}, {}},
		Marks:   []result.Mark{{Name: "fault", AtS: 0.02}},
		Timeline: result.Timeline{BucketMS: 10, Targets: []result.TimelineTarget{{
			OK: []uint32{3, 3, 0, 0, 0}, Refused: []uint32{0, 0, 0, 2, 3}, Bad: []uint32{0, 0, 3, 1, 0},
			WorstUS: []uint32{900, 900, 1_000_000, 60_000, 400},
		}}},
	}
}

func TestWithin_CountsOnlyWholeBuckets(t *testing.T) {
	r := sampleReport()
	require.Equal(t, counts{ok: 6}, within(r, 0, window{0, 0.02}, time.Millisecond))
	require.Equal(t, counts{refused: 5, bad: 1, slow: 0.5}, within(r, 0, window{0.025, -1}, 50*time.Millisecond))
	require.Equal(t, counts{}, within(r, 0, window{9, 10}, time.Second))
}

func TestUntil_LeavesOutWhatMayHaveBeenOutAtTheMark(t *testing.T) {
	r := sampleReport()
	r.SendLag.MaxUS = 100_000
	require.InDelta(t, 2.85, until(r, 3).to, 1e-9)
}

func TestFailover_IsTheLastBadRequestAfterTheFault(t *testing.T) {
	r := sampleReport()
	at, err := markAt(r, "fault")
	require.NoError(t, err)
	require.Equal(t, 15*time.Millisecond, failover(r, 0, at).Round(time.Millisecond))
	require.Zero(t, failover(r, 1, at))
	require.Zero(t, failover(r, 0, 1))
	_, err = markAt(r, "heal")
	require.Error(t, err)
}
