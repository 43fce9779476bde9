package pacer

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func plans() []Plan {
	var list []Plan
	for _, mode := range []Mode{Pinned, Pool} {
		for _, p := range []Plan{
			{Rate: 1000, Targets: 1, Connections: 10, Loops: 2}, {Rate: 900, Targets: 3, Connections: 30, Loops: 2},
			{Rate: 333.3, Targets: 3, Connections: 10, Loops: 4}, {Rate: 7, Targets: 2, Connections: 2, Loops: 8},
			{Rate: 1e6, Targets: 1, Connections: 1, Loops: 1},
		} {
			p.Mode = mode
			list = append(list, p)
		}
	}
	return list
}

func build(t *testing.T, p Plan) *Schedule {
	t.Helper()
	s, err := New(p)
	require.NoError(t, err)
	return s
}

func TestSchedule_RequestKIsDueAtKOverR(t *testing.T) {
	s := build(t, Plan{Rate: 20000, Targets: 1, Connections: 100, Loops: 2})
	require.Equal(t, time.Duration(0), s.Due(0))
	require.Equal(t, 50*time.Microsecond, s.Due(1))
	require.Equal(t, time.Hour, s.Due(20000*3600), "no drift")
	slow := build(t, Plan{Rate: 0.5, Targets: 1, Connections: 1, Loops: 1})
	require.Equal(t, 2*time.Second, slow.Due(1))
}

func TestSchedule_CountIsTheInverseOfDue(t *testing.T) {
	for _, p := range plans() {
		s := build(t, p)
		require.Zero(t, s.Count(0))
		require.Zero(t, s.Count(-time.Second))
		for _, k := range []int64{1, 2, 3, 10, 999, 1_000_001} {
			require.Equal(t, k, s.Count(s.Due(k)), "%+v: requests before the %d-th is due", p, k)
			require.Equal(t, k+1, s.Count(s.Due(k)+1), "%+v", p)
		}
	}
}

func TestSchedule_EveryRequestIsInExactlyOneLane(t *testing.T) {
	for _, p := range plans() {
		t.Run(fmt.Sprintf("%+v", p), func(t *testing.T) {
			s := build(t, p)
			position := make([]int64, len(s.Lanes()))
			for k := range int64(1000) {
				i := s.LaneOf(k)
				lane := s.Lanes()[i]
				require.Equal(t, k, lane.Request(position[i]), "the lane's requests come in order and none is left out")
				require.EqualValues(t, k%int64(p.Targets), lane.Target)
				position[i]++
			}
		})
	}
}

func TestSchedule_ConnectionsAreAllGivenAwayAndSpreadOverTheLoops(t *testing.T) {
	for _, p := range plans() {
		s := build(t, p)
		byLoop, byTarget := make([]int, p.Loops), make([]int, p.Targets)
		for _, lane := range s.Lanes() {
			require.Positive(t, lane.Connections)
			byLoop[lane.Loop] += lane.Connections
			byTarget[lane.Target] += lane.Connections
		}
		sum := 0
		for _, n := range byTarget {
			require.InDelta(t, p.Connections/p.Targets, n, 1, "%+v", p)
			sum += n
		}
		require.Equal(t, p.Connections, sum)
		for _, n := range byLoop {
			require.LessOrEqual(t, n, p.Connections/p.Loops+p.Targets, "%+v: %v", p, byLoop)
		}
	}
}

func TestSchedule_PinnedSpacesTheRequestsOfAConnectionEvenly(t *testing.T) {
	s := build(t, Plan{Rate: 1000, Targets: 2, Connections: 20, Loops: 2})
	for _, lane := range s.Lanes() {
		for m := range int64(50) {
			gap := s.Due(lane.Request(m+1)) - s.Due(lane.Request(m))
			require.Equal(t, 20*time.Millisecond, gap)
		}
	}
}

func TestNew_SaysWhatIsWrong(t *testing.T) {
	good := Plan{Rate: 1, Targets: 1, Connections: 1, Loops: 1}
	for _, tc := range []struct {
		change func(*Plan)
		want   string
	}{
		{func(p *Plan) { p.Rate = 0 }, "rate 0"}, {func(p *Plan) { p.Rate = -1 }, "rate -1"}, {func(p *Plan) { p.Rate = 2e9 }, "at most"},
		{func(p *Plan) { p.Targets = 0 }, "no target"}, {func(p *Plan) { p.Loops = 0 }, "0 loops"},
		{func(p *Plan) { p.Connections, p.Targets = 2, 3 }, "2 connections for 3 targets"},
	} {
		p := good
		tc.change(&p)
		_, err := New(p)
		require.ErrorContains(t, err, tc.want)
	}
	require.Equal(t, "pinned pool", fmt.Sprint(Pinned, " ", Pool))
}

func BenchmarkSchedule_LaneAndDue(b *testing.B) {
	s, err := New(Plan{Rate: 20000, Targets: 3, Connections: 99, Loops: 2})
	require.NoError(b, err)
	k, sum := int64(0), time.Duration(0)
	for b.Loop() {
		sum += s.Due(k) + time.Duration(s.LaneOf(k))
		k++
	}
	_ = sum
}
