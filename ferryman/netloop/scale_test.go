package netloop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// samples has s take n samples at the same load and returns how many loops are to be active after each.
func samples(s *scaler, n int, busiest, processors float64) []int {
	working := make([]int, n)
	for i := range working {
		working[i] = s.sample(busiest, processors)
	}
	return working
}

func last(working []int) int { return working[len(working)-1] }

func TestScaler_AddsLoopsWhereOneIsSaturatedForMoreThanAMoment(t *testing.T) {
	s := newScaler(6)
	require.Equal(t, 1, last(samples(&s, 1000, 0.84, 0.84)), "that much one can do")
	require.Equal(t, 1, s.sample(1, 1))
	require.Equal(t, 1, s.sample(0.5, 0.5), "it was a moment")
	require.Equal(t, []int{1, 2, 2, 4, 4, 6, 6, 6}, samples(&s, 8, 0.9, 5))
}

func TestScaler_AddsALoopWhereOtherProgramsKeepOneFromRunning(t *testing.T) {
	s := newScaler(2)
	require.Equal(t, 2, last(samples(&s, growAfter, 1, 0.3)))
}

func TestScaler_TakesAwayOneAtATimeWhatHasBeenSpareForLong(t *testing.T) {
	s := newScaler(4)
	require.Equal(t, 4, last(samples(&s, 2*growAfter, 1, 4)))
	require.Equal(t, 4, last(samples(&s, 1000, 0.8, 2.2)), "three would have 0.73 of a processor to carry each")
	require.Equal(t, 4, last(samples(&s, shrinkAfter-1, 0.5, 2)))
	require.Equal(t, 4, s.sample(0.8, 2.2), "not all the time")
	require.Equal(t, 4, last(samples(&s, shrinkAfter-1, 0.5, 2)))
	require.Equal(t, 3, s.sample(0.5, 2))
	require.Equal(t, 3, last(samples(&s, 1000, 0.7, 2)), "two would have a whole one")
	require.Equal(t, 1, last(samples(&s, 2*shrinkAfter, 0, 0)))
	require.Equal(t, 1, last(samples(&s, 1000, 0, 0)))
}

func TestScaler_SamplesSeldomWhereThereIsNothingToDo(t *testing.T) {
	s := newScaler(2)
	s.sample(0.05, 0.05)
	require.Equal(t, idleTicks, s.next)
	s.sample(0.5, 0.5)
	require.Equal(t, 1, s.next)
	samples(&s, growAfter, 1, 1)
	require.Equal(t, 1, last(samples(&s, shrinkAfter, 0, 0)))
	samples(&s, shrinkAfter/idleTicks+1, 0, 0)
	require.Equal(t, 2, last(samples(&s, growAfter, 1, 1)))
	require.Equal(t, 1, last(samples(&s, shrinkAfter, 0, 0)), "each of these samples stood for several")
}

// A load that one loop cannot carry, though it looks as if: the number must not swing for ever.
func TestScaler_LearnsWhereFewerWereTooFew(t *testing.T) {
	s := newScaler(2)
	changes, working := 0, 1
	const minutes10 = 12000
	for range minutes10 {
		busiest := 0.5
		if working == 1 {
			busiest = 1
		}
		if n := s.sample(busiest, 0.6); n != working {
			changes, working = changes+1, n
		}
	}
	require.Less(t, changes, 30)
	require.GreaterOrEqual(t, changes, 2*9, "and is tried again at least once in two minutes")

	require.Equal(t, 1, last(samples(&s, 2*maxShrinkAfter, 0, 0)))
	samples(&s, maxShrinkAfter, 0, 0)
	require.Equal(t, 2, last(samples(&s, growAfter, 1, 1)))
	require.Equal(t, 1, last(samples(&s, shrinkAfter, 0, 0)), "what was long ago does not count")
}
