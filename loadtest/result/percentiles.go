package result

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Percentiles sum up a distribution of times in microseconds.
type Percentiles struct {
	Count    int64   `json:"count"`
	MinUS    int64   `json:"min_us"`
	MeanUS   float64 `json:"mean_us"`
	StdDevUS float64 `json:"stddev_us"`
	P50US    int64   `json:"p50_us"`
	P75US    int64   `json:"p75_us"`
	P90US    int64   `json:"p90_us"`
	P99US    int64   `json:"p99_us"`
	P999US   int64   `json:"p999_us"`
	P9999US  int64   `json:"p9999_us"`
	P99999US int64   `json:"p99999_us"`
	MaxUS    int64   `json:"max_us"`
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	if h.TotalCount() == 0 {
		return Percentiles{}
	}
	v := h.ValueAtPercentilesSlice([]float64{50, 75, 90, 99, 99.9, 99.99, 99.999})
	return Percentiles{
		Count: h.TotalCount(), MinUS: h.Min(), MeanUS: h.Mean(), StdDevUS: h.StdDev(), MaxUS: h.Max(),
		P50US: v[0], P75US: v[1], P90US: v[2], P99US: v[3], P999US: v[4], P9999US: v[5], P99999US: v[6],
	}
}

// quantile is a percentile, 0 to 100; zero where nothing was recorded.
func quantile(h *hdrhistogram.Histogram, percent float64) time.Duration {
	if h.TotalCount() == 0 {
		return 0
	}
	return time.Duration(h.ValueAtPercentile(percent)) * time.Microsecond
}

// Bounds are the upper limits of a Distribution's buckets.
var Bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond,
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// Distribution is a histogram as Prometheus likes it: how many were at most each of Bounds.
type Distribution struct {
	AtMost [len(Bounds)]int64
	Count  int64
	Sum    time.Duration // to the precision of the histogram
}

func distribution(h *hdrhistogram.Histogram) Distribution {
	d := Distribution{Count: h.TotalCount(), Sum: time.Duration(h.Mean() * float64(h.TotalCount()) * float64(time.Microsecond))}
	if d.Count == 0 {
		return Distribution{}
	}
	for _, bar := range h.Distribution() {
		if bar.Count == 0 {
			continue
		}
		for i, bound := range Bounds {
			if time.Duration(bar.From)*time.Microsecond <= bound {
				d.AtMost[i] += bar.Count
			}
		}
	}
	return d
}
