#!/usr/bin/env bash
# Lesson 08: reloads of every kind under load.
source "$(dirname "$0")/lib.sh"

keep_config
route_c_is() { contains "$(curl -s -m 5 "$LAB_PROXY/svc-c/hello")" "\"instance\":\"echo-$1\""; }
good=$(metric ferryman_config_reloads_total 'result="success"')
wrong=$(metric ferryman_config_reloads_total 'result="failure"')

background '.lab/bin/loadtest -c 60 -R 300 -d 60s --mode pool --control 127.0.0.1:9105 \
  http://127.0.0.1:8080/svc-a/echo http://127.0.0.1:8080/svc-b/echo http://127.0.0.1:8080/svc-c/echo'
flows() { contains "$(curl -s -m 1 http://127.0.0.1:9105/status)" '"elapsed_s":1.'; }
eventually 20 'the load flows' flows

run 'cp .lab/config/ferryman.toml .lab/config/original.toml'
run 'sed "s/127.0.0.1:9113/127.0.0.1:9112/" .lab/config/original.toml >.lab/config/new &&
mv .lab/config/new .lab/config/ferryman.toml'
eventually 5 'saved by a rename: /svc-c is answered by echo-b' route_c_is b

run 'echo "failure_treshold = 0" >>.lab/config/ferryman.toml'
eventually 5 'written in place, and wrong: one failure is counted' reloads_over failure "$wrong"
claim 'the route is as it was' route_c_is b
run 'task logs NAME=ferryman | grep "configuration rejected" | tail -n 1'
claim 'the log names the line and the key' contains "$OUT" failure_treshold

run 'ln -s original.toml .lab/config/link && mv .lab/config/link .lab/config/ferryman.toml'
eventually 5 'the file is a link to another one now: /svc-c is answered by echo-c' route_c_is c

run 'rm .lab/config/ferryman.toml'
run 'sed "s/127.0.0.1:9113/127.0.0.1:9112/" .lab/config/original.toml >.lab/config/ferryman.toml'
eventually 5 'deleted and made again: /svc-c is answered by echo-b' route_c_is b

run 'mv .lab/config/original.toml .lab/config/ferryman.toml'
eventually 5 'as it was before: /svc-c is answered by echo-c' route_c_is c
run 'curl -s -X POST http://127.0.0.1:9105/stop'
finish
for name in a b c; do
  claim "/svc-$name: not one error" [ "$(class svc-$name ok)" = "$(printf '%s\n' "$OUT" | grep -A1 "Target .*svc-$name" | tail -n 1 | tr -dc 0-9)" ]
done
claim 'no budget was missed' lacks "$OUT" 'Verdict: FAIL'
say "$(minus "$(metric ferryman_config_reloads_total 'result="success"')" "$good") reloads succeeded"
