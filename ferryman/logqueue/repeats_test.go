package logqueue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRepeats_TellsTheFirstAtOnceAndTheRestTogether(t *testing.T) {
	r := Repeats[string, int]{Window: 10 * time.Second}
	start := time.Now()
	at := func(secs float64) time.Time { return start.Add(time.Duration(secs * float64(time.Second))) }
	due := func(secs float64) (lines []string) {
		r.Due(at(secs), func(k string, last, n int) { lines = append(lines, fmt.Sprint(k, " ", last, " x", n)) })
		return lines
	}
	require.True(t, r.First("a", 1, at(0)))
	require.True(t, r.First("b", 1, at(1)))
	require.False(t, r.First("a", 2, at(2)))
	require.False(t, r.First("a", 3, at(9.9)))
	require.Empty(t, due(9.9))
	require.Equal(t, []string{"a 3 x2"}, due(10))
	require.Empty(t, due(11), "b was not repeated")
	require.True(t, r.First("b", 2, at(11)), "a new first")
	require.False(t, r.First("a", 4, at(12)), "it goes on")
	require.Equal(t, []string{"a 4 x1"}, due(20))
	require.Empty(t, due(30))
	require.True(t, r.First("a", 5, at(31)), "it was over")
}

func TestRepeats_RemembersABoundedNumberOfKinds(t *testing.T) {
	r := Repeats[int, int]{Window: time.Second}
	now, told := time.Now(), 0
	for k := range 5 * maxKinds {
		if r.First(k, 0, now) {
			told++
		}
	}
	require.Equal(t, maxKinds, told)
	require.Len(t, r.kinds, maxKinds)
	r.Due(now.Add(time.Second), func(int, int, int) { require.Fail(t, "nothing was repeated") })
	require.Empty(t, r.kinds)
}
