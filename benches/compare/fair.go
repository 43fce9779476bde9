package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/Bunty9/ferryman/benches/compare/contender"
	"github.com/Bunty9/ferryman/benches/compare/report"
	"github.com/Bunty9/ferryman/benches/compare/stats"
)

const (
	// fairRate is what small requests come at, far from what any contender can do: what they wait for is
	// the download.
	fairRate = 2000
	// downloadPath is a body of a GiB, asked for again if it ends within a block.
	downloadPath = "/bytes/1073741824"
	// fairest is how many times the p99 without a download it may be with one; or, as few processors are the
	// upstream's and the client's as well, how many times what it is then without any proxy.
	fairest = 2
)

var errUnfair = errors.New("a download keeps small requests waiting")

// paces of a download in MiB a second; 0 is as fast as it can, which on few processors takes time of the
// upstream and of the client as well, so that it is shown and not judged.
var paces = []float64{100, 0}

// runFair compares, for each contender by itself, the p99 of small requests with and without a large download
// through it, in alternating blocks. It judges ferryman's.
func runFair(ctx context.Context, o options, stdout, stderr io.Writer) error {
	b, err := open(ctx, o, stderr)
	defer b.close()
	if err != nil {
		return err
	}
	f, err := b.lineUp(ctx, workloads()[0])
	defer f.stop()
	if err != nil {
		return err
	}
	beside := map[string]float64{} // the p99 at the first pace
	var own []stats.Pair
	for _, r := range f.running {
		for _, pace := range paces {
			pairs, err := f.besideDownload(ctx, r, pace)
			if err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
			fmt.Fprintln(stdout, fairRow(r.Name, pace, pairs))
			if pace == paces[0] {
				beside[r.Name] = withDownload(pairs)
			}
			if pace == paces[0] && r.Name == contender.Ferryman {
				own = pairs
			}
		}
	}
	if stats.Median(stats.Ratios(own)) > fairest && beside[contender.Ferryman] > fairest*beside[contender.Direct] {
		return errUnfair
	}
	return nil
}

// besideDownload measures p99 in milliseconds: of each pair A is with a download, B without.
func (f *field) besideDownload(ctx context.Context, r *contender.Running, pace float64) ([]stats.Pair, error) {
	pairs := make([]stats.Pair, f.o.pairs)
	s := f.section(light, fairRate)
	for i := range pairs {
		for _, with := range turn(i, false) {
			block, err := f.fairBlock(ctx, r, s, with == 1, pace)
			if err != nil {
				return nil, err
			}
			if with == 1 {
				pairs[i].A = block
			} else {
				pairs[i].B = block
			}
		}
	}
	return pairs, nil
}

func (f *field) fairBlock(ctx context.Context, r *contender.Running, s report.Section, download bool, pace float64) (p99 float64, err error) {
	if download {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- downloads(ctx, r.URL(downloadPath), pace) }()
		defer func() {
			cancel()
			err = errors.Join(err, <-ended)
		}()
	}
	block, err := f.once(ctx, r, s)
	if err == nil && block.Refused != "" {
		err = errors.New(block.Refused)
	}
	if err != nil {
		return 0, err
	}
	return float64(block.Outcome.Latency.P99) / 1000, nil
}

// downloads reads bodies until ctx ends, at most pace MiB a second if it is over 0.
func downloads(ctx context.Context, url string, pace float64) error {
	piece := make([]byte, 256<<10)
	for ctx.Err() == nil {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			return unlessOver(ctx, err)
		}
		begun, read := time.Now(), 0
		for err == nil {
			var n int
			n, err = io.ReadFull(a.Body, piece)
			read += n
			if pace > 0 {
				due := begun.Add(time.Duration(float64(read) / (pace * (1 << 20)) * float64(time.Second)))
				select {
				case <-time.After(time.Until(due)):
				case <-ctx.Done():
				}
			}
		}
		a.Body.Close()
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return unlessOver(ctx, err)
		}
	}
	return nil
}

// unlessOver drops an error that is only the end of ctx.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("download: %w", err)
}

// withDownload is the median of the p99 with a download.
func withDownload(pairs []stats.Pair) float64 {
	var all []float64
	for _, p := range pairs {
		all = append(all, p.A)
	}
	return stats.Median(all)
}

func fairRow(name string, pace float64, pairs []stats.Pair) string {
	var without []float64
	for _, p := range pairs {
		without = append(without, p.B)
	}
	ratio, how := stats.Of(stats.Ratios(pairs)), "as fast as it can"
	if pace > 0 {
		how = fmt.Sprintf("at %.0f MiB/s", pace)
	}
	return fmt.Sprintf("%-14s p99 %.2f ms, %.2f ms beside a download %s: %.2f (%.2f to %.2f) times", name,
		stats.Median(without), withDownload(pairs), how, ratio.Median, ratio.Low, ratio.High)
}
