#!/usr/bin/env bash
# Lesson 02: what the proxy adds, in latency and in processor time.
source "$(dirname "$0")/lib.sh"

if [ "$LAB_MODE" = native ]; then
  run '.lab/bin/loadtest -c 20 -R 1000 -d 4s --mode pool \
  http://127.0.0.1:9111/echo http://127.0.0.1:8080/svc-a/echo'
  claim 'every direct request was answered' [ "$(class :[0-9]*/echo ok)" = 2000 ]
  claim 'every proxied request was answered' [ "$(class svc-a ok)" = 2000 ]
  case $OUT in
    *'Verdict: INVALID'*) say 'the machine was too busy for its latencies to mean anything: they are not judged' ;;
    *) claim 'no budget was missed' contains "$OUT" 'Verdict: PASS' ;;
  esac
else
  say 'skipped: the data ports of containers are not published, so there is no direct way to compare with'
fi

# processor SECONDS-BEFORE REQUESTS: microseconds for each request since then
processor() { awk -v a="$1" -v b="$(metric process_cpu_seconds_total)" -v n="$2" 'BEGIN { printf "%.0f", (b - a) / n * 1e6 }'; }

begun=$(metric process_cpu_seconds_total)
run '.lab/bin/loadtest -c 20 -R 1000 -d 4s --mode pool http://127.0.0.1:8080/svc-a/echo'
claim 'every request was answered' contains "$OUT" 'Outcomes: ok 4,000'
kept=$(processor "$begun" 4000)
say "ferryman used $kept us of processor time for each request on a kept connection"

begun=$(metric process_cpu_seconds_total)
run '.lab/bin/loadtest -c 20 -R 1000 -d 4s --mode pool --no-keepalive http://127.0.0.1:8080/svc-a/echo'
claim 'every request was answered' contains "$OUT" 'Outcomes: ok 4,000'
fresh=$(processor "$begun" 4000)
say "ferryman used $fresh us of processor time for each request on a connection of its own"
if [ "$kept" -eq 0 ]; then
  say 'skipped: this system does not tell the processor time'
else
  claim 'a kept connection costs less than 500 us for each request' less "$kept" 500
  claim 'a connection of its own costs more' more "$fresh" "$kept"
fi
