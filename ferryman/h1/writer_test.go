package h1_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// slowConn answers each Write as the next row says.
type slowConn struct {
	net.Conn
	rows []wrote
	got  []int // the lengths of what was to be written
}

type wrote struct {
	n   int
	err error
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (c *slowConn) SetWriteDeadline(time.Time) error { return nil }

func (c *slowConn) Write(b []byte) (int, error) {
	c.got = append(c.got, len(b))
	row := c.rows[0]
	c.rows = c.rows[1:]
	return row.n, row.err
}

// lateOverTLS is the error of a late Write whose count says nothing.
type lateOverTLS bool

func (lateOverTLS) Error() string { return "late" }
func (lateOverTLS) Unwrap() error { return os.ErrDeadlineExceeded }
func (l lateOverTLS) Taken() bool { return bool(l) }

func TestWriter_GoesOnAsLongAsThePeerTakesSomething(t *testing.T) {
	late, broken := os.ErrDeadlineExceeded, errors.New("broken")
	for _, row := range []struct {
		name    string
		writes  []wrote
		lengths []int
		err     error
		stalled bool
	}{
		{"at once", []wrote{{8, nil}}, []int{8}, nil, false},
		{"in pieces", []wrote{{3, late}, {1, late}, {4, nil}}, []int{8, 5, 4}, nil, false},
		{"none", []wrote{{0, late}}, []int{8}, late, true},
		{"none after some", []wrote{{3, late}, {0, late}}, []int{8, 5}, late, true},
		{"broken", []wrote{{3, broken}}, []int{8}, broken, false},
		{"TLS, all encrypted, some taken", []wrote{{8, lateOverTLS(true)}, {0, lateOverTLS(true)}, {0, nil}}, []int{8, 0, 0}, nil, false},
		{"TLS, all encrypted, none taken", []wrote{{8, lateOverTLS(false)}}, []int{8}, late, true},
		{"TLS, none taken later", []wrote{{5, lateOverTLS(true)}, {0, lateOverTLS(false)}}, []int{8, 3}, late, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := &slowConn{rows: row.writes}
			var w h1.Writer
			w.Reset(systemClock{}, c, time.Second)
			err := w.Send(make([]byte, 8))
			require.ErrorIs(t, err, row.err)
			require.Equal(t, row.lengths, c.got)
			require.Equal(t, row.stalled, w.Stalled)
		})
	}
}
