package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// process shows what ferryman itself costs.
func process() row {
	return row{"Resource usage", 4, []placed{
		{6, graph("CPU per request", "a flat line. It rises at low rates, as fewer requests share the fixed cost.",
			units.Seconds,
			query{`sum(rate(process_cpu_seconds_total{job="ferryman"}[$__rate_interval]))` +
				` / (sum(rate(ferryman_requests_total[$__rate_interval])) > 0)`, "per request"})},
		{6, graph("Goroutines", "a number that comes back down after load. One that only grows is a leak.",
			units.Short, query{`sum(go_goroutines{job="ferryman"})`, "goroutines"})},
		{6, graph("Memory", "a sawtooth of the heap below a flat resident line.",
			units.BytesIEC,
			query{`sum(go_memstats_heap_inuse_bytes{job="ferryman"})`, "heap"},
			query{`sum(process_resident_memory_bytes{job="ferryman"})`, "resident"})},
		{6, graph("File descriptors", "the distance to the limit, on a logarithmic axis. At the limit accepting pauses.",
			units.Short,
			query{`sum(process_open_fds{job="ferryman"})`, "open"},
			query{`sum(process_max_fds{job="ferryman"})`, "limit"}).Min(1).
			ScaleDistribution(common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(10)).
			OverrideByName("limit", dashed())},
	}}
}

// generator shows the other two sides: what was asked for, and what reached the upstreams.
func generator() row {
	quantile := func(family, name string) query {
		return query{`histogram_quantile(0.99, sum by (le) (rate(` + family + `_bucket[$__rate_interval])))`, name}
	}
	return row{"Load generator and upstreams", 4, []placed{
		{6, graph("Target and achieved rate", "two lines on top of each other. If achieved is lower, the results are those of a lower load than intended.",
			units.RequestsPerSecond,
			query{`sum(loadtest_target_rate)`, "target"},
			query{`sum(rate(loadtest_requests_total[$__rate_interval]))`, "achieved"}).OverrideByName("target", dashed())},
		{6, graph("Response and service time (p99)", "a gap: requests waited before they were sent. Service time alone would hide it; lesson 09.",
			units.Seconds,
			quantile("loadtest_response_seconds", "response"), quantile("loadtest_service_seconds", "service"),
			quantile("loadtest_send_lag_seconds", "send lag"))},
		{6, graph("Outcomes", "anything but ok. refused is ferryman's own 503, which is what an open circuit is for.",
			units.RequestsPerSecond, query{`sum by (class) (rate(loadtest_requests_total[$__rate_interval]))`, "{{class}}"})},
		{6, graph("Requests received by the upstreams", "a faulty one that receives only checks and probes while its circuit is open.",
			units.RequestsPerSecond,
			query{`sum by (instance) (rate(echo_requests_total{endpoint!="health"}[$__rate_interval]))`, "{{instance}}"},
			query{`sum by (instance) (rate(echo_requests_total{endpoint="health"}[$__rate_interval]))`, "{{instance}} checks"})},
	}}
}
