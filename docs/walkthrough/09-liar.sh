#!/usr/bin/env bash
# Lesson 09: one stall, two ways to measure it.
source "$(dirname "$0")/lib.sh"

# p99 ROW of the last report, in milliseconds
p99() {
  printf '%s\n' "$OUT" | awk -v row="  $1 " 'index($0, row) == 1 {
    v = $4
    if (v ~ /us$/) print v / 1000; else if (v ~ /ms$/) print v + 0; else print v * 1000
  }'
}

run '(sleep 2; task slow UPSTREAM=a LATENCY=800ms; sleep 0.6; task heal UPSTREAM=a) &
.lab/bin/loadtest -c 1 -R 100 -d 6s --max-errors any http://127.0.0.1:8080/svc-a/echo'
response=$(p99 'response time') service=$(p99 'service time')
say "p99: $response ms by the response time, $service ms by the service time"
claim 'the response time shows the stall' more "$response" 300
claim 'the service time hides it: not a third is left' less "$(awk -v s="$service" 'BEGIN { print 3 * s }')" "$response"

run '(sleep 2; task slow UPSTREAM=a LATENCY=800ms; sleep 0.6; task heal UPSTREAM=a) &
.lab/bin/loadtest -c 100 -R 100 -d 6s --mode pool --max-errors any http://127.0.0.1:8080/svc-a/echo'
response=$(p99 'response time') service=$(p99 'service time')
say "p99: $response ms by the response time, $service ms by the service time"
claim 'with a connection for each caller the service time shows it as well' more "$service" 300
