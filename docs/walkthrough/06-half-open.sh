#!/usr/bin/env bash
# Lesson 06: after the cooldown a single request probes the upstream.
source "$(dirname "$0")/lib.sh"

keep_config
reloaded=$(metric ferryman_config_reloads_total 'result="success"')
run '(echo "default_cooldown_secs = 2"; cat .lab/config/ferryman.toml) >.lab/config/new &&
mv .lab/config/new .lab/config/ferryman.toml'
eventually 10 'the cooldown is 2 s' reloads_over success "$reloaded"
run 'task errors UPSTREAM=a'
run 'for n in 1 2 3 4; do curl -s -o /dev/null -w "%{http_code}\n" http://127.0.0.1:8080/svc-a/status/200; done'
eventually 5 'the circuit is open' circuit_is a open

reached_before=$(reached a) probes_before=$(became a half_open)
run '.lab/bin/loadtest -c 50 -R 500 -d 7s --mode pool --max-errors any --max-refusal 1s \
  http://127.0.0.1:8080/svc-a/echo'
reached=$(minus "$(reached a)" "$reached_before") probes=$(minus "$(became a half_open)" "$probes_before")
say "of 3500 requests $reached reached the upstream; the circuit was half-open $probes times"
claim 'two probes at least, four at most' [ "$probes" -ge 2 -a "$probes" -le 4 ]
claim 'each time exactly one request reached the upstream' [ "$reached" = "$probes" ]

run 'curl -s -X PUT -d "{\"latency\":\"700ms\",\"health\":\"fail\"}" http://127.0.0.1:9101/fault'
aborts=$(metric ferryman_client_aborts_total 'route="/svc-a"')
run 'until curl -s -o /dev/null -m 0.4 http://127.0.0.1:8080/svc-a/echo; test $? = 28; do sleep 0.1; done'
left() { more "$(metric ferryman_client_aborts_total 'route="/svc-a"')" "$aborts"; }
eventually 5 'the client of the probe disconnected before its response' left
claim 'the circuit is still half-open' circuit_is a half_open
run 'curl -s -w "  %{http_code}\n" http://127.0.0.1:8080/svc-a/echo'
claim 'the next request is the probe, and it is answered' contains "$OUT" '  200'
claim 'so the circuit is closed' circuit_is a closed
run 'task heal UPSTREAM=a'
