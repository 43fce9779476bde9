// Package stats turns a handful of samples into a median with an interval. It knows nothing of
// where the samples come from.
//
//	s := stats.Of([]float64{17.1, 16.8, 17.3})
//	fmt.Println(s.Median, s.Low, s.High)
//
// The interval is a percentile bootstrap of the median: it asks how far the median would move if
// the run had drawn other blocks of the same kind. It does not cover what all blocks of a run have
// in common, such as the machine.
package stats

import (
	"math/rand/v2"
	"slices"
)

// Summary is a median with the interval that covers it in 95 of 100 resamplings.
type Summary struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"` // samples; 0: nothing was measured and the rest means nothing
}

const (
	resamplings = 4000
	outside     = 0.025 // share of the resamplings on either side of the interval
	minSamples  = 3     // fewer say nothing about spread: the interval is their range
)

// Of sums up samples. The result depends on their values only: the resampling has a fixed seed.
func Of(samples []float64) Summary {
	switch n := len(samples); {
	case n == 0:
		return Summary{}
	case n < minSamples:
		return Summary{Median: Median(samples), Low: slices.Min(samples), High: slices.Max(samples), N: n}
	}
	rng := rand.New(rand.NewPCG(1, uint64(len(samples))))
	drawn := make([]float64, len(samples))
	medians := make([]float64, resamplings)
	for i := range medians {
		for j := range drawn {
			drawn[j] = samples[rng.IntN(len(samples))]
		}
		medians[i] = medianInPlace(drawn)
	}
	slices.Sort(medians)
	last := float64(resamplings - 1)
	return Summary{
		Median: Median(samples), N: len(samples),
		Low: medians[int(outside*last)], High: medians[int((1-outside)*last+0.5)],
	}
}

// Median is the middle of the samples, the mean of the two middle ones where their number is even,
// and 0 where there are none.
func Median(samples []float64) float64 { return medianInPlace(slices.Clone(samples)) }

func medianInPlace(s []float64) float64 {
	if len(s) == 0 {
		return 0
	}
	slices.Sort(s)
	middle := len(s) / 2
	if len(s)%2 == 1 {
		return s[middle]
	}
	return (s[middle-1] + s[middle]) / 2
}

// Pair holds one figure of two contenders from neighbouring blocks.
type Pair struct{ A, B float64 }

// Ratios are A over B, pair by pair. Pairs with a B of 0 are left out.
func Ratios(pairs []Pair) []float64 {
	var r []float64
	for _, p := range pairs {
		if p.B != 0 {
			r = append(r, p.A/p.B)
		}
	}
	return r
}

// Differences are A minus B, pair by pair.
func Differences(pairs []Pair) []float64 {
	var d []float64
	for _, p := range pairs {
		d = append(d, p.A-p.B)
	}
	return d
}
