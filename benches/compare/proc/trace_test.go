package proc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const straceTable = `strace: Process 4711 attached with 3 threads
strace: Process 4711 detached
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 41.20    0.120000           2     60000           sendto
 38.00    0.110000           1     60100       100 recvfrom
 20.80    0.060000           6     10000           epoll_pwait
------ ----------- ----------- --------- --------- ----------------
100.00    0.290000           2    130100       100 total
`

func TestParseStrace_ReadsCallsWithAndWithoutErrors(t *testing.T) {
	c, err := parseStrace(straceTable)
	require.NoError(t, err)
	require.EqualValues(t, 130100, c.Total)
	require.Equal(t, map[string]int64{"sendto": 60000, "recvfrom": 60100, "epoll_pwait": 10000}, c.ByName)
}

func TestParseStrace_RefusesATableThatDoesNotAddUp(t *testing.T) {
	for _, text := range []string{"", "strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted\n",
		" 41.20    0.120000           2     60000           sendto\n100.00    0.290000           2    130100       100 total\n"} {
		_, err := parseStrace(text)
		require.Error(t, err, text)
	}
}

func TestParsePerf_ReadsTotalAndNames(t *testing.T) {
	text := "1300,,raw_syscalls:sys_enter,100,100.00,,\n600,,syscalls:sys_enter_sendto,1,100.00,,\n" +
		"<not counted>,,syscalls:sys_enter_futex,0,100.00,,\n0,,syscalls:sys_enter_close,0,100.00,,\n"
	c, err := parsePerf(text)
	require.NoError(t, err)
	require.Equal(t, Calls{Total: 1300, ByName: map[string]int64{"sendto": 600}}, c)
}

func TestParsePerf_WithoutATotalIsAnError(t *testing.T) {
	for _, text := range []string{"", "<not supported>,,raw_syscalls:sys_enter,0,100.00,,\n", "12,,syscalls:sys_enter_sendto,1,100.00,,\n"} {
		_, err := parsePerf(text)
		require.Error(t, err, text)
	}
}
