#!/usr/bin/env bash
# Lesson 10: from an alert to its cause; and a goodbye that loses nothing.
source "$(dirname "$0")/lib.sh"

run 'task kill UPSTREAM=a
for n in 1 2 3 4; do curl -s -o /dev/null -w "%{http_code}\n" http://127.0.0.1:8080/svc-a/hello; done'
if [ "$LAB_PROMETHEUS" ] && curl -sf -o /dev/null -m 2 "$LAB_PROMETHEUS/-/ready"; then
  firing() { curl -s -m 5 "$LAB_PROMETHEUS/api/v1/alerts" | tr '{' '\n' | grep "\"alertname\":\"$1\"" | grep -q 'severity'; }
  eventually 20 'Prometheus has the alert CircuitOpen' firing CircuitOpen
  run 'curl -s http://127.0.0.1:9091/api/v1/alerts | grep -oE "[^\"]*its circuit stays open|the circuit of [^\"]*"'
  claim 'its summary names the upstream' contains "$OUT" "the circuit of ${LAB_UPSTREAM_A} is not closed"
else
  say 'skipped: no Prometheus in this lab'
fi
run 'task logs NAME=ferryman | grep "circuit changed" | tail -n 1'
claim 'the last change is the one to open' contains "$OUT" 'to=open'
claim 'it names its cause: no connection, or a health check' [ "$(printf '%s\n' "$OUT" | grep -cE 'cause=(dial|"health check failed")')" = 1 ]
run 'curl -s http://127.0.0.1:9090/metrics | grep "^ferryman_requests_total.*svc-a.*50[234]"'
claim 'the status shows how: 502, no response' contains "$OUT" 'status="502"'
run 'task heal UPSTREAM=a'
eventually 12 '/svc-a is back' answers /svc-a/echo 200

if [ "$LAB_MODE" = native ]; then
  run 'task slow UPSTREAM=b LATENCY=1500ms'
  run '(echo "upstream_timeout_secs = 10"; grep -v upstream_timeout_secs .lab/config/ferryman.toml) >.lab/drain.toml
.lab/bin/ferryman --config .lab/drain.toml --bind 127.0.0.1:9180 --metrics-bind 127.0.0.1:9190 & pid=$!
until curl -sf -o /dev/null http://127.0.0.1:9190/readyz || ! kill -0 $pid; do sleep 0.1; done
for n in 1 2 3 4 5; do curl -s -o /dev/null -w "%{http_code}\n" http://127.0.0.1:9180/svc-b/echo & done
sleep 0.7; kill -TERM $pid
curl -s -w "readyz: %{http_code}\n" http://127.0.0.1:9190/readyz
curl -s -w "a new client: %{http_code}\n" http://127.0.0.1:9180/svc-b/echo
wait $pid; echo "exit status: $?"; wait; rm .lab/drain.toml'
  claim 'all five that were in flight were answered' [ "$(printf '%s\n' "$OUT" | grep -c '^200$')" = 5 ]
  claim 'while it drains, /readyz is 503' contains "$OUT" 'readyz: 503'
  claim 'and new clients are refused' contains "$OUT" 'a new client: 000'
  claim 'it ended with status 0' contains "$OUT" 'exit status: 0'
  run 'task heal UPSTREAM=b'
else
  say 'skipped: upstreams in containers cannot be reached by a ferryman of this machine'
fi
