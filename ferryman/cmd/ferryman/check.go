package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// check prints the routes of a valid configuration.
func (p *program) check() error {
	c, err := config.Load(p.get("config"))
	if err != nil {
		return err
	}
	slices.SortFunc(c.Routes, func(a, b config.Route) int { return cmp.Compare(a.Prefix, b.Prefix) })
	fmt.Fprintf(p.stdout, "%s is valid\n\n", p.get("config"))
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PREFIX\tUPSTREAM\tCOOLDOWN\tSTRIP\tUPGRADE")
	for _, r := range c.Routes {
		fmt.Fprintf(w, "%s\t%s\t%v\t%t\t%t\n", r.Prefix, r.Upstream, c.Cooldown(r), r.StripPrefix, r.Upgrade)
	}
	return w.Flush()
}

// healthcheck asks a running proxy on this host whether it is up.
func (p *program) healthcheck(ctx context.Context) error {
	url := "http://" + reachable(p.get("metrics-bind")) + "/healthz"
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	resp, err := ask(ctx, url)
	if err != nil {
		return fmt.Errorf("%s does not answer (%w): start ferryman, or pass the --metrics-bind that it has", url, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: this is hardly ferryman, pass the --metrics-bind that it has", url, resp.Status)
	}
	fmt.Fprintln(p.stdout, "ok")
	return nil
}

// reachable turns an address to listen on into one to connect to.
func reachable(bind string) string {
	host, port, _ := net.SplitHostPort(bind) // passed validation
	switch ip, err := netip.ParseAddr(host); {
	case host == "", err == nil && ip.IsUnspecified() && ip.Is4():
		host = "127.0.0.1"
	case err == nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
