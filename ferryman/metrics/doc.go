// Package metrics is every metric of the proxy. What happens is counted through handles that are resolved
// when the routes change; what merely is, such as the state of a circuit, is read at scrape.
//
//	set := metrics.New("1.0", "abc123", runtime.Version())
//	routes := set.Sync([]metrics.RouteKey{{Prefix: "/api", Upstream: "10.0.0.7:80"}}, upstreams)
//	routes[0].Answered(200)
//	http.Handle("/metrics", set.Handler())
//
// All labels come from the configuration, so that no client can add a series.
//
// metrics.go has the Set, route.go the counters of a route, collect.go the names and help texts of all series.
package metrics
