#!/usr/bin/env bash
# Lesson 04: an upstream that accepts connections and does not respond.
source "$(dirname "$0")/lib.sh"

opened=$(became a open)
run '(sleep 2; task pause UPSTREAM=a) &
.lab/bin/loadtest -c 300 -R 300 -d 6s --mode pool --timeout 4s --max-errors any --max-refusal 1s \
  http://127.0.0.1:8080/svc-a/echo http://127.0.0.1:8080/svc-b/echo http://127.0.0.1:8080/svc-c/echo'
bad=$(bad svc-a) span=$(bad_span svc-a)
say "/svc-a: $bad bad within $span s"
claim 'the requests of about a second failed, at least 30' [ "$bad" -ge 30 ]
claim 'the last bad one was due less than 5 s after the first' less "$span" 5
claim 'they were 504' contains "$(printf '%s\n' "$OUT" | grep Statuses)" '504 x'
for name in b c; do
  claim "/svc-$name was not affected" [ "$(class svc-$name ok)" = 600 ]
done
claim 'the circuit opened once' [ "$(became a open)" = $((opened + 1)) ]

if [ "$LAB_MODE" = native ]; then
  run 'curl -s -o /dev/null -m 1 -w "connected: %{remote_ip}, status: %{http_code}\n" http://127.0.0.1:9111/health'
  claim 'the handshake works' contains "$OUT" 'connected: 127.0.0.1'
  claim 'but there is no response' [ "$CODE" = 28 ]
else
  say 'skipped: the data ports of containers are not published'
fi
run 'task heal UPSTREAM=a'
eventually 12 '/svc-a is back within a health interval' answers /svc-a/echo 200

run 'task pause UPSTREAM=b'
run 'for n in 1 2 3 4; do curl -s -d upload -w "  %{http_code}\n" http://127.0.0.1:8080/svc-b/echo; done'
claim 'each of four uploads is a 504' [ "$(printf '%s\n' "$OUT" | grep -c 504)" = 4 ]
claim 'and the circuit is closed' circuit_is b closed
run 'task heal UPSTREAM=b'
