package certificate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Case 324.
func TestSet_WarnsFrom14DaysBeforeOnceADayAndWhenLoaded(t *testing.T) {
	a, b := makePair(t, "a"), makePair(t, "b")
	p, err := Load(write(t, t.TempDir(), a.leaf+a.issuer, a.key))
	require.NoError(t, err)
	end := p.Expires()
	var s Set
	s.Add(p)
	s.Add(p)
	require.Equal(t, map[string]time.Time{p.Name(): end}, s.Expiries())
	warned := func(left time.Duration) (n int) {
		s.due(end.Add(-left), func(name string, expires time.Time) {
			require.Equal(t, p.Name(), name)
			require.Equal(t, end, expires)
			n++
		})
		return n
	}
	const day = 24 * time.Hour
	require.Zero(t, warned(15*day))
	require.Equal(t, 1, warned(14*day))
	require.Zero(t, warned(14*day-time.Second))
	require.Zero(t, warned(13*day+time.Second))
	require.Equal(t, 1, warned(13*day))
	require.Equal(t, 1, warned(-time.Hour), "it has expired")
	require.Zero(t, warned(-2*time.Hour))
	require.Equal(t, 1, warned(-25*time.Hour))

	require.NoError(t, p.use([][]byte{[]byte(b.leaf), []byte(b.key)}))
	end = p.Expires()
	require.Equal(t, 1, warned(time.Hour), "another one, about to expire as well")
}
