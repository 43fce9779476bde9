#!/usr/bin/env bash
# Lesson 05: which errors count, and a health check that does not see them.
source "$(dirname "$0")/lib.sh"

run 'task errors UPSTREAM=a STATUS=503 HEALTH=ok'
run 'task errors UPSTREAM=b STATUS=500 HEALTH=ok'
opened_a=$(became a open) opened_b=$(became b open)
run '.lab/bin/loadtest -c 20 -R 200 -d 11s --mode pool --max-errors any --max-refusal 1s \
  http://127.0.0.1:8080/svc-a/echo http://127.0.0.1:8080/svc-b/echo'
opened=$(minus "$(became a open)" "$opened_a")
say "/svc-a: the circuit opened $opened times; $(class svc-a status) requests were let through, $(class svc-a refused) refused"
claim 'the 503 opened the circuit, and again after each green check' more "$opened" 1
claim 'only a few requests got through' [ "$(class svc-a status)" -lt 200 ]
claim 'the 500 opened nothing' [ "$(became b open)" = "$opened_b" ]
claim 'and every request came as far as the upstream' [ "$(class svc-b status)" = 1100 ]

run 'task errors UPSTREAM=a STATUS=503 HEALTH=follow'
run 'for n in 1 2 3 4; do curl -s -o /dev/null -w "%{http_code}\n" http://127.0.0.1:8080/svc-a/echo; done'
eventually 5 'the circuit is open' circuit_is a open
closed=$(became a closed)
checks() { curl -sf "$LAB_ECHO_A/metrics" | series echo_requests_total 'endpoint="health"' 'status="503"'; }
before=$(checks)
one_more() { more "$(checks)" "$before"; }
eventually 10 'a health check fails' one_more
claim 'and the circuit stays open' circuit_is a open
claim 'it never closed' [ "$(became a closed)" = "$closed" ]
run 'task heal UPSTREAM=a; task heal UPSTREAM=b'
