package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/benches/compare/load"
	"github.com/Bunty9/ferryman/benches/compare/proc"
)

// TestMain makes this test's executable the generator of its own comparison.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == load.Command {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// The whole way, with what every machine has: build, start, verify, alternate, count, end.
func TestMeasured_ComparesAndLeavesNothingBehind(t *testing.T) {
	o, err := parseOptions(false, []string{
		"--quick", "--contenders", "direct,floor", "--loads", "saturated,light", "--block", "200ms",
	}, os.Stderr)
	require.NoError(t, err)
	o.repeats = 0 // what disturbs it does not matter here
	var progress bytes.Buffer
	r, err := measured(t.Context(), o, &progress)
	require.NoError(t, err, progress.String())
	require.Len(t, r.Sections, 2)
	for _, s := range r.Sections {
		for _, row := range s.Rows {
			if row.Contender == "floor" && strings.Contains(row.Note, "not found") {
				continue // no C compiler
			}
			require.Positive(t, row.Blocks, "%s %s: %s", s.Load, row.Contender, row.Note)
			require.Positive(t, row.Rate.Median, "%s %s", s.Load, row.Contender)
		}
	}
	ferryman := r.Sections[0].Rows[2]
	require.Equal(t, "ferryman", ferryman.Contender)
	require.Positive(t, ferryman.CPU.Median)
	require.Positive(t, ferryman.MemoryMiB.Median)
	require.Less(t, ferryman.Allocations.Median, 5.0)
	require.Len(t, proc.Tree(os.Getpid()), 1, "processes are left")
}

func TestFair_MeasuresEachContenderBesideADownload(t *testing.T) {
	o, err := parseOptions(false, []string{"--quick", "--contenders", "direct", "--pairs", "2", "--block", "200ms"}, os.Stderr)
	require.NoError(t, err)
	var rows, progress bytes.Buffer
	if err := runFair(t.Context(), o, &rows, &progress); err != nil {
		require.ErrorIs(t, err, errUnfair, progress.String()) // a busy machine may make it so
	}
	require.Regexp(t, `direct +p99 .* beside a download at 100 MiB/s: `, rows.String())
	require.Regexp(t, `ferryman +p99 .* beside a download at 100 MiB/s: `, rows.String())
}

func TestDownloads_EndWithTheirContextAndTellWhatFailed(t *testing.T) {
	require.ErrorContains(t, downloads(t.Context(), "http://127.0.0.1:1/", 0), "download: ")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, downloads(ctx, "http://127.0.0.1:1/", 0))
}
