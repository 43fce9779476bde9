package labenv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLastStage_TakesTheBinaryFromTheContext(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	for _, p := range programs {
		text, err := os.ReadFile(filepath.Join(root, p.dockerfile))
		require.NoError(t, err)
		last, err := LastStage(string(text))
		require.NoError(t, err, p.dockerfile)
		require.Regexp(t, `^FROM scratch\nCOPY `+p.Name+` /`+p.Name+"\n", last)
		require.Contains(t, last, "USER 65532:65532\n")
		require.Contains(t, last, `ENTRYPOINT ["/`+p.Name+`"]`)
	}
	_, err = LastStage("FROM scratch\nCOPY x /x\n")
	require.Error(t, err)
}

func TestPage_CircuitAndSums(t *testing.T) {
	p := parsePage("# HELP x y\nferryman_circuit_state{upstream=\"echo-a:8000\"} 2\n" +
		"r{route=\"/a\",status=\"503\"} 3\nr{route=\"/b\",status=\"503\"} 4\nr{route=\"/b\",status=\"200\"} 5\nrr{} 9\nup 1\n")
	require.Equal(t, "half_open", p.Circuit("echo-a:8000"))
	require.Equal(t, "unknown", p.Circuit("echo-b:8000"))
	require.InDelta(t, 7, p.Sum("r", `status="503"`), 0)
	require.InDelta(t, 4, p.Sum("r", `status="503"`, `route="/b"`), 0)
	require.InDelta(t, 1, p.Sum("up"), 0)
}

func TestPorts_ComeFromVariablesAndSayWhatIsWrong(t *testing.T) {
	p, err := PortsFrom(func(name string) string {
		return map[string]string{"LAB_PROXY_PORT": "8081", "LAB_ECHO_C_PORT": "7000"}[name]
	})
	require.NoError(t, err)
	require.Equal(t, Ports{
		Proxy: 8081, Metrics: 9090, Prometheus: 9091, Grafana: 3000, Admin: [3]int{9101, 9102, 7000}, Data: [3]int{9111, 9112, 9113},
	}, p)
	require.Contains(t, p.Env(), "LAB_ECHO_C_PORT=7000")
	_, err = PortsFrom(func(string) string { return "http" })
	require.ErrorContains(t, err, `LAB_PROXY_PORT is "http"`)
}

func TestDescribeFault_NamesOnlyWhatIsOn(t *testing.T) {
	require.Equal(t, "ok", describeFault(`{"latency":"0s","error_rate":0,"error_status":503,"hang":false,"health":"follow"}`))
	require.Equal(t, "error_rate 1, health ok", describeFault(`{"latency":"0s","error_rate":1,"error_status":503,"health":"ok"}`))
}

func TestUntil_SaysWhatWasAwaitedAndWhy(t *testing.T) {
	err := Until(t.Context(), time.Millisecond, "the ferry", func(context.Context) error { return errors.New("fog") })
	require.EqualError(t, err, "the ferry: not within 1ms: fog")
}

func TestState_IsReadBackAsItWasWritten(t *testing.T) {
	root := t.TempDir()
	_, err := Load(root)
	require.ErrorIs(t, err, ErrNone)
	s := &State{Mode: ModeNative, Proxy: "http://127.0.0.1:1", Echoes: []Echo{{Name: "a"}}}
	require.NoError(t, s.Save(root))
	got, err := Load(root)
	require.NoError(t, err)
	require.Equal(t, s, got)
	require.NoError(t, Forget(root))
	require.NoError(t, Forget(root))
	_, err = Load(root)
	require.ErrorIs(t, err, ErrNone)
}
