#!/usr/bin/env bash
# Lesson 03: one of three upstreams fails under load.
source "$(dirname "$0")/lib.sh"

opened=$(became a open)
run '(sleep 2; task kill UPSTREAM=a) &
.lab/bin/loadtest -c 60 -R 300 -d 8s --mode pool --timeout 4s --max-errors any --max-refusal 1s \
  http://127.0.0.1:8080/svc-a/echo http://127.0.0.1:8080/svc-b/echo http://127.0.0.1:8080/svc-c/echo'
refused=$(class svc-a refused) bad=$(bad svc-a) span=$(bad_span svc-a)
say "/svc-a: $bad bad within $span s, $refused refused at once"
most=60
[ "$LAB_MODE" = native ] || most=250 # the address of a container that is gone refuses nobody: dials time out
claim "at least one request failed with the kill, and no more than $most" [ "$bad" -ge 1 -a "$bad" -le $most ]
claim 'the last bad one was due less than 5 s after the first' less "$span" 5
claim 'over 400 of the 600 requests to /svc-a that followed were refused at once' [ "$refused" -gt $((600 - most - 140)) ]
for name in b c; do
  claim "/svc-$name was not affected" [ "$(class svc-$name ok)" = 800 ]
done
claim 'the circuit opened once' [ "$(became a open)" = $((opened + 1)) ]

run 'task status'
run 'task heal UPSTREAM=a'
eventually 12 '/svc-a is back within a health interval' answers /svc-a/echo 200

run 'task kill UPSTREAM=b'
run 'for n in 1 2 3 4 5 6; do curl -s -w "  %{http_code}\n" http://127.0.0.1:8080/svc-b/echo; done'
claim 'the first answer is 502' contains "$(printf '%s\n' "$OUT" | head -n 1)" 502
claim 'at most three are' [ "$(printf '%s\n' "$OUT" | grep -c 502)" -le 3 ]
claim 'the last one is 503' contains "$(printf '%s\n' "$OUT" | tail -n 1)" 503
run 'task heal UPSTREAM=b; curl -s -i http://127.0.0.1:8080/svc-b/echo'
case $OUT in
  *' 503 '*) claim 'the upstream is back, and its route still refuses' contains "$OUT" 'Retry-After' ;;
  *) claim 'a health check came in between: it is back' contains "$OUT" ' 200 ' ;;
esac
