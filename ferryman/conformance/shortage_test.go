package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/config"
)

const shortOfDescriptors = `ferryman_local_shortages_total{resource="descriptors"}`

// A process that has no descriptor left says so, and blames no upstream: requests get a 503 that may be tried again at
// once, and who has a connection goes on.
func TestCase291_ShortageOfDescriptorsIsNoFailureOfTheUpstream(t *testing.T) {
	forEachMode(t, func(t *testing.T, m mode) {
		var ups [3]*upstream
		for i := range ups {
			ups[i] = newUpstream(t, fmt.Sprint("U", i))
			t.Cleanup(ups[i].close)
		}
		dns := newNameServer(t)
		dns.is("app.test.", "127.0.0.1")
		c := config.Default()
		c.HealthInterval = time.Hour
		c.FailureThreshold, c.DefaultCooldown = 1, time.Hour
		c.Routes = []config.Route{{Prefix: "/", Upstream: ups[0].addr}, {Prefix: "/pooled", Upstream: ups[2].addr},
			{Prefix: "/named", Upstream: fmt.Sprint("app.test.:", port(ups[1].addr))}}
		p := startProcess(t, m, processSpec{Config: c, DNS: dns.addr()})
		h1, h2 := p.dial(t), p.dialH2(t)
		require.Equal(t, 200, h1.do(t, request{path: "/pooled"}).status)
		require.Contains(t, p.scrape(), shortOfDescriptors)

		p.tell("take all descriptors")
		for range 3 {
			for _, path := range []string{"/", "/named"} {
				resp := h1.do(t, request{path: path})
				require.Equal(t, 503, resp.status)
				require.Equal(t, "upstream unavailable", string(resp.body))
				require.Equal(t, "1", resp.get("Retry-After"))
				s := h2.want(t, h2.ask("GET", path, true), 503)
				require.Equal(t, "1", s.final().get("retry-after"))
			}
			require.Equal(t, 200, h1.do(t, request{path: "/pooled"}).status)
		}
		require.GreaterOrEqual(t, p.scrape()[shortOfDescriptors], 12.0)
		require.Zero(t, sum(p.scrape(), "ferryman_circuit_transitions_total"))
		require.Equal(t, 1, p.log.count("level="), "%s", p.log.text())
		require.Equal(t, 1, p.log.count("level=ERROR", "resource=descriptors", "too many open files"))

		p.tell("give them back")
		require.Equal(t, 200, h1.do(t, request{}).status)
		eventually(t, func() bool { return h1.do(t, request{path: "/named"}).status == 200 }, "the name is not found again")
		ups[0].playAlways(replyThenClose(ok(""))) // a dial for each request
		eventually(t, func() bool {
			h1.do(t, request{})
			return p.log.count("level=INFO", "resource=descriptors") == 1
		}, "the end of the shortage is not told")
	})
}

func TestCase291_CheckWithoutADescriptorIsNoFailureOfTheUpstream(t *testing.T) {
	oneMode(t, func(t *testing.T, m mode) {
		u := newUpstream(t, "U")
		t.Cleanup(u.close)
		c := config.Default()
		c.HealthInterval, c.HealthTimeout = checkInterval, checkTimeout
		c.FailureThreshold, c.DefaultCooldown = 1, time.Hour
		c.Routes = []config.Route{{Prefix: "/", Upstream: u.addr}}
		p := startProcess(t, m, processSpec{Config: c})
		failed := func() float64 { return sum(p.scrape(), "ferryman_circuit_transitions_total", `to="open"`) }
		eventually(t, func() bool { return len(u.checked()) > 2 }, "no checks")
		require.Contains(t, p.scrape(), shortOfDescriptors) // on a connection that stays
		p.tell("take all descriptors")
		eventually(t, func() bool { return p.scrape()[shortOfDescriptors] > 0 }, "checks have descriptors")
		before, counted := failed(), p.scrape()[shortOfDescriptors] // on a busy machine a check may have been late before
		eventually(t, func() bool { return p.scrape()[shortOfDescriptors] >= counted+5 }, "checks do not go on")
		require.Equal(t, before, failed())
		over := func() int { return p.log.count("level=INFO", "resource=descriptors") }
		require.Positive(t, p.log.count("level=ERROR"))
		require.LessOrEqual(t, p.log.count("level=ERROR"), over()+1, "a line for each shortage: %s", p.log.text()) // one as a rule
		p.tell("give them back")
		n := len(u.checked())
		eventually(t, func() bool { return len(u.checked()) > n+2 }, "checks do not recover")
		eventually(t, func() bool { return over() == p.log.count("level=ERROR") }, "the end of the shortage is not told")
	})
}
