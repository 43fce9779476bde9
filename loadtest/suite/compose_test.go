//go:build integration

package suite

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// The real files, as `task up` uses them, with every flavour of compose that is here.
func TestCompose_TheLabStartsBreaksAndHeals(t *testing.T) {
	_, err := labenv.ComposeFlavour(t.Context())
	require.NoError(t, err)
	for i, flavour := range labenv.ComposeFlavours {
		ports, err := labenv.FreePorts()
		require.NoError(t, err)
		c := labenv.Compose{
			Flavour: flavour, Root: root, Project: fmt.Sprintf("ferryman-suite-%d-%d", os.Getpid(), i),
			Files: []string{"core.yml"}, Env: append(images.Env(), ports.Env()...),
		}
		if c.Command(t.Context(), "version").Run() != nil {
			continue // the other flavour is here, as was required above
		}
		t.Run(flavour[0]+fmt.Sprint(len(flavour)), func(t *testing.T) { drive(t, c, ports) })
	}
}

func drive(t *testing.T, c labenv.Compose, ports labenv.Ports) {
	s, err := labenv.StartCompose(t.Context(), c, ports)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.End(context.Background())) })
	state := func() string {
		page, err := labenv.ReadPage(t.Context(), s.Metrics+"/metrics")
		require.NoError(t, err)
		return page.Circuit("echo-a:8000")
	}
	is := func(want string) {
		eventually(t, 20*time.Second, "the circuit to be "+want, func(ctx context.Context) error {
			_, _, _ = labenv.Ask(ctx, "GET", s.Proxy+"/svc-a/echo", "")
			if now := state(); now != want {
				return fmt.Errorf("it is %s", now)
			}
			return nil
		})
	}
	for _, kind := range []string{"kill", "pause", "errors"} {
		require.NoError(t, s.Fault(t.Context(), kind, "a", ""), kind)
		is("open")
		require.NoError(t, labenv.Answers(t.Context(), s.Proxy+"/svc-b/echo"))
		require.NoError(t, s.Heal(t.Context(), "a"), kind)
		is("closed")
	}
}
