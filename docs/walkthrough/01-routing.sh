#!/usr/bin/env bash
# Lesson 01: which upstream answers which path.
source "$(dirname "$0")/lib.sh"

before=$(metric ferryman_requests_total 'route="none"' 'status="404"')
run 'for path in /svc-a /svc-a/ /svc-a/hello /svc-ab /svc-a%2Fhello /SVC-A/hello /svc; do
  curl -s -o /dev/null -w "%{http_code} $path\n" "http://127.0.0.1:8080$path"
done'
for path in /svc-a /svc-a/ /svc-a/hello; do
  claim "$path is a path of the route" contains "$OUT" "200 $path"
done
for path in /svc-ab /svc-a%2Fhello /SVC-A/hello /svc; do
  claim "$path is not" contains "$OUT" "404 $path"
done
after=$(metric ferryman_requests_total 'route="none"' 'status="404"')
claim 'the four are counted under route none' [ "$after" = $((before + 4)) ]

run 'curl -s "http://127.0.0.1:8080/svc-b/x%2Fy?to=/svc-c"'
claim 'the query does not route' contains "$OUT" '"instance":"echo-b"'
claim 'the upstream sees the target byte for byte' contains "$OUT" '"target":"/svc-b/x%2Fy?to=/svc-c"'

run 'for path in /svc-a/../svc-b/x /svc-a/%2e%2e/svc-b/x /svc-a/./x /svc-a//../x; do
  curl -s -o /dev/null --path-as-is -w "%{http_code} $path\n" "http://127.0.0.1:8080$path"
done'
claim 'each path with a dot segment is refused' [ "$(printf '%s\n' "$OUT" | grep -c '^400 ')" = 4 ]
