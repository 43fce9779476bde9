package proc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseParent_IsFoundBehindAnAwkwardName(t *testing.T) {
	p, err := parseParent("4242 (a) b (c) S 17 4242 4242 0 -1 4194304 100")
	require.NoError(t, err)
	require.Equal(t, 17, p)
	for _, line := range []string{"", "1 (x", "1 (x) S", "1 (x) S a 1 1"} {
		_, err := parseParent(line)
		require.Error(t, err, line)
	}
}

func TestParseRollup_FindsPssAndNotItsRelatives(t *testing.T) {
	text := "5500-7ffe ---p 00000000 00:00 0   [rollup]\nRss:       900 kB\nPss:       321 kB\nPss_Dirty:  12 kB\n"
	n, err := parseRollup(text)
	require.NoError(t, err)
	require.EqualValues(t, 321, n)
	_, err = parseRollup("Rss: 900 kB\n")
	require.Error(t, err)
}

func TestParseBusy_LeavesOutIdleWaitingAndStolenTime(t *testing.T) {
	require.Equal(t, 1260*time.Millisecond, parseBusy("cpu  100 10 10 9999 8888 1 5 7777 3 3\ncpu0 1 2 3\n"))
	for _, text := range []string{"", "cpu0 1 1 1 1 1 1 1 1\n", "cpu 1 2 x 4 5 6 7 8\n", "cpu 1 2\n"} {
		require.Zero(t, parseBusy(text), text)
	}
}
