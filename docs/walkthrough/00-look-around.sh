#!/usr/bin/env bash
# Lesson 00: a proxy and three upstreams, as processes or as containers.
source "$(dirname "$0")/lib.sh"

shown 'task demo'

run 'task status'
for name in a b c; do
  claim "the table has /svc-$name with its circuit closed" contains "$(printf '%s' "$OUT" | grep "^/svc-$name ")" ' closed '
done

run 'curl -si http://127.0.0.1:8080/svc-a/hello'
claim 'echo-a answers' contains "$OUT" '"instance":"echo-a"'
claim 'it saw the request as the proxy sent it' contains "$OUT" '["Via","1.1 ferryman"]'

before=$(metric ferryman_requests_total 'route="none"' 'status="404"')
run 'curl -si http://127.0.0.1:8080/nowhere'
claim 'a path without a route is a 404' contains "$OUT" '404 Not Found'
claim 'it says so' contains "$OUT" 'no route'
run 'curl -s http://127.0.0.1:9090/metrics | grep "^ferryman_requests_total"'
after=$(metric ferryman_requests_total 'route="none"' 'status="404"')
claim "the series none counts it ($before, then $after)" [ "$after" = $((before + 1)) ]
claim 'no series is named after the path' lacks "$OUT" nowhere

shown 'task down' 'others need the lab'
