package proc

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that makes a known number of system calls proves each tracer that works here.
func TestTracer_CountsWhatAProcessDoes(t *testing.T) {
	for _, tracer := range []Tracer{{Name: "perf"}, {Name: "strace"}} {
		t.Run(tracer.Name, func(t *testing.T) {
			if !tracer.works(t.Context()) {
				t.Logf("%s does not work here: nothing to prove", tracer.Name)
				return
			}
			// dd reads and writes one byte at a time: two calls for each.
			busy := exec.Command("dd", "if=/dev/zero", "of=/dev/null", "bs=1")
			busy.SysProcAttr = groupOfItsOwn()
			require.NoError(t, busy.Start())
			defer func() {
				killGroup(busy.Process.Pid)
				_ = busy.Wait()
			}()
			c, done, err := tracer.Count(t.Context(), []int{busy.Process.Pid}, 300*time.Millisecond, counter(3))
			require.NoError(t, err)
			require.EqualValues(t, 3, done)
			require.Greater(t, c.Total, int64(100))
			require.InEpsilon(t, 1, float64(c.ByName["read"])/float64(c.ByName["write"]), 0.05)
			require.InEpsilon(t, c.Total, c.ByName["read"]+c.ByName["write"], 0.05)
		})
	}
}

func TestTracer_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := Tracer{Name: "perf"}.Count(ctx, []int{1}, time.Hour, counter(1))
	require.Error(t, err)
}

// counter returns 0, then step, then twice that.
func counter(step int64) func() (int64, error) {
	n := -step
	return func() (int64, error) {
		n += step
		return n, nil
	}
}
