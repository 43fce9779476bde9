package proc

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTree_HoldsChildrenAndGrandchildren(t *testing.T) {
	shell := exec.Command("sh", "-c", "sh -c 'sleep 60 & wait' & wait")
	shell.SysProcAttr = groupOfItsOwn()
	require.NoError(t, shell.Start())
	defer func() {
		killGroup(shell.Process.Pid)
		_ = shell.Wait()
	}()
	require.Eventually(t, func() bool { return len(Tree(shell.Process.Pid)) == 3 }, 5*time.Second, 5*time.Millisecond)
	tree := Tree(shell.Process.Pid)
	require.Equal(t, shell.Process.Pid, tree[0])
	require.Contains(t, Tree(os.Getpid()), tree[2])
	_, err := PSS(tree)
	require.NoError(t, err)
}

func TestCPU_OfAProcessThatIsGoneIsAnError(t *testing.T) {
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	require.Nil(t, Tree(gone.Process.Pid))
	_, err := CPU([]int{gone.Process.Pid})
	require.Error(t, err)
}

// What another process has used agrees with what the kernel says of it once it has ended.
func TestCPU_IsWhatAProcessUsed(t *testing.T) {
	busy := exec.Command("dd", "if=/dev/zero", "of=/dev/null", "bs=1")
	require.NoError(t, busy.Start())
	var last time.Duration
	for last < 200*time.Millisecond {
		now, err := CPU([]int{busy.Process.Pid})
		require.NoError(t, err)
		require.GreaterOrEqual(t, now, last)
		last = now
	}
	// It stands still for the last look: a machine that is busy may let it run on between a look and its end.
	require.NoError(t, busy.Process.Signal(syscall.SIGSTOP))
	_, err := syscall.Wait4(busy.Process.Pid, nil, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	last, err = CPU([]int{busy.Process.Pid})
	require.NoError(t, err)
	require.NoError(t, busy.Process.Kill())
	_ = busy.Wait() // it was killed
	used := busy.ProcessState.UserTime() + busy.ProcessState.SystemTime()
	require.InDelta(t, used.Seconds(), last.Seconds(), 0.1)
}

func TestProcess_StopTakesItsChildrenAlong(t *testing.T) {
	// The child ignores the polite signal and outlives its parent.
	cmd := exec.Command("sh", "-c", "sh -c 'trap \"\" TERM; sleep 60 & wait; wait' & echo started; wait")
	p, err := Start("family", cmd, t.TempDir())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(Tree(p.PID())) == 3 }, 5*time.Second, 5*time.Millisecond)
	tree := Tree(p.PID())
	require.True(t, p.Alive())
	p.Stop(5 * time.Second)
	require.False(t, p.Alive())
	require.Equal(t, "started", p.Tail())
	require.Eventually(t, func() bool { return ended(tree) }, 5*time.Second, 5*time.Millisecond)
}

// ended counts those as ended that nobody has waited for.
func ended(pids []int) bool {
	for _, pid := range pids {
		if _, err := PSS([]int{pid}); err == nil {
			return false
		}
	}
	return true
}

func TestStart_OfWhatIsNotThereNamesIt(t *testing.T) {
	_, err := Start("ghost", exec.Command("/no/such/program"), t.TempDir())
	require.ErrorContains(t, err, "start ghost")
}
