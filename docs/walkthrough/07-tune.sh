#!/usr/bin/env bash
# Lesson 07: what bounds a failover, and what a tighter bound costs.
source "$(dirname "$0")/lib.sh"

keep_config
reloaded=$(metric ferryman_config_reloads_total 'result="success"')
run '(echo "upstream_timeout_secs = 0.5"; grep -v upstream_timeout_secs .lab/config/ferryman.toml) >.lab/config/new &&
mv .lab/config/new .lab/config/ferryman.toml'
eventually 10 'the limit is 0.5 s' reloads_over success "$reloaded"
run '(sleep 2; task pause UPSTREAM=a) &
.lab/bin/loadtest -c 300 -R 300 -d 5s --mode pool --timeout 4s --max-errors any --max-refusal 1s \
  http://127.0.0.1:8080/svc-a/echo http://127.0.0.1:8080/svc-b/echo http://127.0.0.1:8080/svc-c/echo'
bad=$(bad svc-a) span=$(bad_span svc-a)
say "/svc-a: $bad bad within $span s"
claim 'the requests of about half a second failed, at least some' [ "$bad" -ge 10 ]
claim 'the last bad one was due less than 0.95 s after the first' less "$span" 0.95
run 'task heal UPSTREAM=a'
run 'task slow UPSTREAM=b LATENCY=700ms'
run 'curl -s -w "  %{http_code}\n" http://127.0.0.1:8080/svc-b/echo'
claim 'the price: a correct response after 0.7 s is a 504 now' contains "$OUT" 504
run 'task heal UPSTREAM=b'

reloaded=$(metric ferryman_config_reloads_total 'result="success"')
run '(echo "health_interval_secs = 1"; echo "health_timeout_secs = 0.5"; cat .lab/config/ferryman.toml) >.lab/config/new &&
mv .lab/config/new .lab/config/ferryman.toml'
eventually 10 'checks run each second' reloads_over success "$reloaded"
eventually 10 'all circuits are closed' healthy
run 'task pause UPSTREAM=c'
begun=$SECONDS
eventually 8 'the circuit opens without a single request, by checks alone' circuit_is c open
say "that took about $((SECONDS - begun)) s; the bound is 3 x 1 s + 0.5 s, with the defaults 3 x 5 s + 2 s"
run 'task heal UPSTREAM=c'
