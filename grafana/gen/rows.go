package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

const (
	green, yellow, red = "green", "yellow", "red"
	plain              = "text"
)

// verdict answers whether it is fine at all.
func verdict() row {
	refused := []dashboard.DynamicConfigValue{property("unit", units.NoUnit), property("decimals", 0),
		property("thresholds", map[string]any{"mode": "absolute", "steps": from(green, step(0.5, red))})}
	down := []dashboard.DynamicConfigValue{
		property("thresholds", map[string]any{"mode": "absolute", "steps": from(green, step(1, red))})}
	return row{"Overview", 3, []placed{
		{4, number("Requests", "a rate that fits what you send. A rate of 0 means that there are no requests, or that ferryman is down.",
			units.RequestsPerSecond, from(plain),
			query{`sum(rate(ferryman_requests_total[$__rate_interval]))`, "requests"})},
		{4, number("Answered with 5xx", "0 %. With three routes, one that is down shows as 33 %.",
			units.PercentUnit, from(green, step(0.001, yellow), step(0.05, red)),
			query{`(sum(rate(ferryman_requests_total{status=~"5.."}[$__rate_interval])) or vector(0))` +
				` / (sum(rate(ferryman_requests_total[$__rate_interval])) > 0)`, "5xx"})},
		{4, number("p99, budget 50 ms", "a value under the budget. It ends with the upstream's response head, so it has no timeouts: they are 504.",
			units.Seconds, from(green, step(budget/2, yellow), step(budget, red)),
			query{`histogram_quantile(0.99, sum by (le) (rate(ferryman_request_duration_seconds_bucket[$__rate_interval])))`, "p99"})},
		{4, number("Upstreams", "none down. Down is an upstream whose circuit is not closed, half-open included.",
			units.NoUnit, from(plain),
			query{`sum(ferryman_upstream_alive)`, "alive"},
			query{`count(ferryman_upstream_alive) - sum(ferryman_upstream_alive)`, "down"}).
			GraphMode(common.BigValueGraphModeNone).OverrideByName("down", down)},
		{4, number("Open circuits", "0. An open circuit refuses requests immediately with 503 instead of letting them hang.",
			units.NoUnit, from(green, step(1, red)),
			query{`sum(ferryman_circuit_state == bool 1)`, "open"})},
		{4, number("Last reload", "the time of your last save, and none refused: a refused configuration changes nothing.",
			units.DateTimeFromNow, from(plain),
			query{`1000 * max(ferryman_config_last_reload_success_timestamp_seconds)`, "in use since"},
			query{`sum(increase(ferryman_config_reloads_total{result="failure"}[$__range]))`, "refused"}).
			GraphMode(common.BigValueGraphModeNone).OverrideByName("refused", refused)},
	}}
}

// routes shows rate, errors and duration by route.
func routes() row {
	return row{"Routes: rate, errors, duration", 5, []placed{
		{8, graph("Rate", "lines that stay level while another route fails. none is a path without a route.",
			units.RequestsPerSecond, query{`sum by (route) (rate(ferryman_requests_total[$__rate_interval]))`, "{{route}}"})},
		{8, graph("Errors", "which status: 502 no response, 503 refused or the upstream's own, 504 timeout; and clients that disconnected.",
			units.RequestsPerSecond,
			query{`sum by (route, status) (rate(ferryman_requests_total{status=~"5.."}[$__rate_interval]))`, "{{route}} {{status}}"},
			query{`sum by (route) (rate(ferryman_client_aborts_total[$__rate_interval])) > 0`, "{{route}} left"})},
		{8, graph("Duration (p99)", "one route that departs from the others: its upstream is slow. All at once: the machine is slow.",
			units.Seconds,
			query{`histogram_quantile(0.99, sum by (le, route) (rate(ferryman_request_duration_seconds_bucket[$__rate_interval])))`, "{{route}}"})},
	}}
}

// upstreams shows what ferryman thinks of each.
func upstreams() row {
	circuits := []state{{"0", "closed", green}, {"1", "open", red}, {"2", "half-open", yellow}}
	alive := []state{{"0", "down", red}, {"1", "alive", green}}
	return row{"Upstreams: circuits", 5, []placed{
		{8, states("Circuit", "red bands: how long, and whether a probe ends them (a thin yellow band before) or a health check (none).",
			circuits, query{`ferryman_circuit_state`, "{{upstream}}"})},
		{4, states("Alive", "the same in two colours, as alerts see it.", alive, query{`ferryman_upstream_alive`, "{{upstream}}"})},
		{6, bars("Transitions", "pairs of bars, open and closed: a circuit that flaps. Only bars to open: probes that fail.",
			units.Short, query{`sum by (upstream, to) (increase(ferryman_circuit_transitions_total[$__rate_interval]))`, "{{upstream}} to {{to}}"})},
		{6, graph("Connections", "in_use that rises while the request rate does not: responses take longer. Idle connections close when an upstream fails.",
			units.Short,
			query{`sum by (upstream, state) (ferryman_upstream_connections)`, "{{upstream}} {{state}}"},
			query{`sum by (state) (ferryman_connections)`, "clients {{state}}"})},
	}}
}

// latency shows the distribution behind the p99.
func latency() row {
	quantile := func(q, name string) query {
		return query{`histogram_quantile(` + q + `, sum by (le) (rate(ferryman_request_duration_seconds_bucket[$__rate_interval])))`, name}
	}
	return row{"Latency: request head to response head", 5, []placed{
		{12, clouds("All requests", "a second band above the first: an average would lie between the two, where there are no requests.",
			units.Seconds, query{`sum by (le) (rate(ferryman_request_duration_seconds_bucket[$__rate_interval]))`, "{{le}}"})},
		{12, graph("Quantiles", "p99.9 far above p99: a few requests wait. Values snap to bucket bounds: read shapes, not digits.",
			units.Seconds, quantile("0.5", "p50"), quantile("0.99", "p99"), quantile("0.999", "p99.9"),
			query{`vector(0.05)`, "budget of p99"}).OverrideByName("budget of p99", dashed())},
	}}
}
