package ferryman

import (
	"net"

	dialer "github.com/Bunty9/ferryman/ferryman/dial"
)

// newDialer makes what dials upstreams, for requests and for checks.
func (p *Proxy) newDialer(r *net.Resolver) *dialer.Dialer {
	d := dialer.New(dialer.Options{
		Resolver: r,
		ShortageBegun: func(resource string, err error) {
			p.log.Error("upstreams cannot be dialled for want of a resource of this host", "resource", resource, "error", err)
		},
		ShortageOver: func(resource string) { p.log.Info("upstreams can be dialled again", "resource", resource) },
	})
	p.metrics.Shortages(dialer.Resources[:], d.Shortages)
	return d
}

// RefreshNames asks anew for the addresses of all upstreams' names, in the background. Connections to addresses that a
// name has no more take no further request.
func (p *Proxy) RefreshNames() {
	for _, u := range p.snapshot.Load().upstreams {
		p.goroutines.Post(func() {
			if err := u.Renew(p.goroutines, 0); err != nil {
				p.log.Warn("name not resolved, its connections stay in use", "upstream", u.Addr(), "error", err)
			}
		})
	}
}
