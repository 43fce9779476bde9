package stats_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/benches/compare/stats"
)

func TestMedian_IsTheMiddleAndLeavesTheSamplesAlone(t *testing.T) {
	samples := []float64{9, 1, 5}
	require.Equal(t, 5.0, stats.Median(samples))
	require.Equal(t, []float64{9, 1, 5}, samples)
	require.Equal(t, 3.0, stats.Median([]float64{1, 5, 2, 4}))
	require.Zero(t, stats.Median(nil))
}

func TestOf_NothingMeasuredSaysSo(t *testing.T) {
	require.Equal(t, stats.Summary{}, stats.Of(nil))
}

func TestOf_TooFewSamplesShowTheirRange(t *testing.T) {
	require.Equal(t, stats.Summary{Median: 4, Low: 4, High: 4, N: 1}, stats.Of([]float64{4}))
	require.Equal(t, stats.Summary{Median: 5, Low: 4, High: 6, N: 2}, stats.Of([]float64{6, 4}))
}

func TestOf_EqualSamplesHaveNoSpread(t *testing.T) {
	require.Equal(t, stats.Summary{Median: 7, Low: 7, High: 7, N: 4}, stats.Of([]float64{7, 7, 7, 7}))
}

func TestOf_OneOutlierMovesNeitherMedianNorInterval(t *testing.T) {
	samples := []float64{10, 10.1, 9.9, 10.2, 9.8, 10, 10.1, 9.9, 10, 500}
	s := stats.Of(samples)
	require.InDelta(t, 10, s.Median, 0.1)
	require.Less(t, s.High, 11.0)
	require.LessOrEqual(t, s.Low, s.Median)
	require.GreaterOrEqual(t, s.High, s.Median)
}

func TestOf_SameSamplesGiveTheSameInterval(t *testing.T) {
	samples := []float64{3, 1, 4, 1, 5, 9, 2, 6}
	require.Equal(t, stats.Of(samples), stats.Of(slices.Clone(samples)))
}

// The interval of a normal sample's median must hold the true median in about 95 of 100 runs.
func TestOf_IntervalCoversTheTruthAboutAsOftenAsItClaims(t *testing.T) {
	const runs, truth = 400, 20.0
	rng := rand.New(rand.NewPCG(7, 7))
	covered := 0
	for range runs {
		samples := make([]float64, 10)
		for i := range samples {
			samples[i] = truth + rng.NormFloat64()
		}
		if s := stats.Of(samples); s.Low <= truth && truth <= s.High {
			covered++
		}
	}
	require.Greater(t, covered, runs*88/100)
	require.Less(t, covered, runs)
}

func TestRatios_AreTakenPairByPair(t *testing.T) {
	// The machine became twice as slow between the pairs: the ratio does not notice.
	pairs := []stats.Pair{{A: 9, B: 10}, {A: 18, B: 20}, {A: 1, B: 0}}
	require.Equal(t, []float64{0.9, 0.9}, stats.Ratios(pairs))
	require.Equal(t, []float64{-1, -2, 1}, stats.Differences(pairs))
}
