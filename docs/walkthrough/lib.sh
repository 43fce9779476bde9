# What the lessons' scripts share: it is sourced, not run. The lab must be up. `task verify:NN` names its
# addresses in LAB_*; without them they are those of `task demo`. Works with bash 3.2 and any awk.
#
#   run 'COMMAND'       a command of the page: runs it, and compares its output with the page's sample
#   background 'COMMAND', finish   the same for one that goes on while others run
#   shown 'COMMAND'     a command of the page that a script cannot run, such as `task demo`
#   claim TEXT TEST...  what the lesson says, checked
#   eventually S TEXT TEST...   polls a test, for at most S seconds

set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PAGE=${0%.sh}.md
LAB_ROOT=${LAB_ROOT:-$(cd "$HERE/../.." && pwd)}
LAB_MODE=${LAB_MODE:-native}
LAB_PROXY=${LAB_PROXY:-http://127.0.0.1:8080}
LAB_METRICS=${LAB_METRICS:-http://127.0.0.1:9090}
LAB_PROMETHEUS=${LAB_PROMETHEUS-http://127.0.0.1:9091}
LAB_CONFIG=${LAB_CONFIG:-$LAB_ROOT/.lab/config/ferryman.toml}
LAB_ECHO_A=${LAB_ECHO_A:-http://127.0.0.1:9101}
LAB_ECHO_B=${LAB_ECHO_B:-http://127.0.0.1:9102}
LAB_ECHO_C=${LAB_ECHO_C:-http://127.0.0.1:9103}
LAB_UPSTREAM_A=${LAB_UPSTREAM_A:-127.0.0.1:9111}
LAB_UPSTREAM_B=${LAB_UPSTREAM_B:-127.0.0.1:9112}
LAB_UPSTREAM_C=${LAB_UPSTREAM_C:-127.0.0.1:9113}
LAB=${LAB:-$LAB_ROOT/.lab/bin/lab}
LAB_LOADTEST=${LAB_LOADTEST:-$LAB_ROOT/.lab/bin/loadtest}

WORK=$(mktemp -d)
OUT=
CODE=0
JOB=
REASON=

# say prints a line of the script's own.
say() { printf '# %s\n' "$*"; }

# task is what `task` does in the lab: variables go to the helper's environment, UPSTREAM and NAME are its
# arguments.
task() {
  local name=$1 args=() env=(LAB_LESSON=1) word
  shift
  for word in "$@"; do
    case $word in
      UPSTREAM=* | NAME=*) args+=("${word#*=}") ;;
      *) env+=("$word") ;;
    esac
  done
  env "${env[@]}" "$LAB" "$name" ${args[@]+"${args[@]}"}
}

# localized puts this lab's addresses in a command that has the usual ones.
localized() {
  local c=$1
  c=${c//http:\/\/127.0.0.1:8080/$LAB_PROXY}
  c=${c//http:\/\/127.0.0.1:9090/$LAB_METRICS}
  c=${c//http:\/\/127.0.0.1:9091/$LAB_PROMETHEUS}
  c=${c//http:\/\/127.0.0.1:9101/$LAB_ECHO_A}
  c=${c//http:\/\/127.0.0.1:9102/$LAB_ECHO_B}
  c=${c//http:\/\/127.0.0.1:9103/$LAB_ECHO_C}
  c=${c//127.0.0.1:9111/$LAB_UPSTREAM_A}
  c=${c//127.0.0.1:9112/$LAB_UPSTREAM_B}
  c=${c//127.0.0.1:9113/$LAB_UPSTREAM_C}
  c=${c//.lab\/config/$(dirname "$LAB_CONFIG")}
  c=${c//.lab\/bin\/loadtest/$LAB_LOADTEST}
  printf '%s' "$c"
}

# run leaves the output in OUT and the exit status in CODE; neither ends the script by itself.
run() {
  printf '\n$ %s\n' "$1"
  CODE=0
  (
    set +e
    cd "$LAB_ROOT"
    eval "$(localized "$1")"
    code=$?
    wait
    exit "$code"
  ) >"$WORK/out" 2>&1 </dev/null || CODE=$?
  compare "$1"
}

# compare prints the output and holds it against the page.
compare() {
  OUT=$(cat "$WORK/out")
  [ -z "$OUT" ] || printf '%s\n' "$OUT"
  sample "$1" >"$WORK/sample"
  if [ -s "$WORK/sample" ]; then
    same "$WORK/sample" "$WORK/out" || fail "the output is not what $(basename "$PAGE") shows"
  fi
}

# background is run for a command that goes on while others run; finish waits for it, as run would.
background() {
  printf '\n$ %s\n' "$1"
  (
    cd "$LAB_ROOT"
    eval "exec $(localized "$1")"
  ) >"$WORK/background" 2>&1 </dev/null &
  JOB=$!
  COMMAND=$1
}

finish() {
  CODE=0
  wait "$JOB" || CODE=$?
  JOB=
  printf '\n(%s)\n' "$COMMAND"
  cp "$WORK/background" "$WORK/out"
  compare "$COMMAND"
}

shown() { printf '\n$ %s\n' "$1"; say "(not run here: ${2:-the lab is up already})"; }

# sample prints the block of text that the page has below the block of sh with a command, if there is one.
sample() {
  WANTED=$1 awk '
    /^```sh$/ { inside = "sh"; block = ""; found = 0; next }
    /^```text$/ { inside = "text"; next }
    /^```/ { found = inside == "sh" && block == ENVIRON["WANTED"]; inside = ""; next }
    inside == "sh" { block = block == "" ? $0 : block "\n" $0 }
    inside == "text" && found' "$PAGE"
}

# mask makes outputs of different runs alike: numbers, dates, addresses and folders go, and what tells
# containers from processes.
mask() {
  tr -d '\r' <"$1" | sed -E \
    -e $'s/\x1b\\[[0-9;]*m//g' \
    -e 's/^[a-z]+[-_][0-9]+ +\| //' \
    -e 's#[^ "]*/\.lab/#.lab/#g' \
    -e 's#([^ "]*/compose|/etc)/ferryman/ferryman\.toml#.lab/config/ferryman.toml#g' \
    -e 's/  no answer  /  killed  /' \
    -e 's/time=[^ ]+/time=T/g' \
    -e 's/(Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]+ [A-Z][a-z]+ /DAY /g' \
    -e 's/[0-9]+([.,:][0-9]+)*/N/g' \
    -e 's/N(us|ms|s|KB|MB|GB|B)([^A-Za-z]|$)/N\2/g' \
    -e 's/echo-[abc]:N/N/g' \
    -e 's/[[:space:]]+/ /g' -e 's/ $//'
}

# same is whether file $2 is like sample $1, in which a line of three dots stands for any lines.
same() {
  mask "$1" >"$WORK/want"
  mask "$2" >"$WORK/got"
  awk '
    FNR == 1 { file++ }
    file == 1 { want[++w] = $0; next }
    { got[++g] = $0 }
    END {
      reach[0] = 1 # reach[j]: the lines of the sample so far can stand for the first j lines
      for (i = 1; i <= w; i++) {
        for (j = 0; j <= g; j++)
          if (want[i] == "...") next_[j] = reach[j] || (j > 0 && next_[j - 1])
          else next_[j] = j > 0 && reach[j - 1] && want[i] == got[j]
        any = 0
        for (j = 0; j <= g; j++) { reach[j] = next_[j]; any = any || reach[j] }
        if (!any) { print "# the sample has: " want[i]; exit 1 }
      }
      if (!reach[g]) { print "# there are more lines than in the sample"; exit 1 }
    }' "$WORK/want" "$WORK/got"
}

fail() {
  REASON=$*
  exit 1
}

# claim TEXT TEST... ends the script unless the test holds.
claim() {
  local text=$1
  shift
  "$@" || fail "$text"
  printf 'ok: %s\n' "$text"
}

# eventually SECONDS TEXT TEST... is claim with patience.
eventually() {
  local end=$((SECONDS + $1)) text=$2
  shift 2
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || fail "in vain: $text"
    sleep 0.1
  done
  printf 'ok: %s\n' "$text"
}

contains() { case $1 in *"$2"*) ;; *) return 1 ;; esac; }
lacks() { ! contains "$@"; }

# less A B and more A B compare numbers that may have a fraction.
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }
more() { less "$2" "$1"; }
minus() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%g", a - b }'; }

# metric NAME [LABEL...] adds up the series of ferryman's that have all the labels, such as 'status="503"'.
metric() { curl -sf -m 5 "$LAB_METRICS/metrics" | series "$@"; }

# series does the same with a metrics page on standard input.
series() {
  local name=$1
  shift
  LABELS=$(printf '%s\n' "$@") NAME=$name awk '
    BEGIN { n = split(ENVIRON["LABELS"], wanted, "\n") }
    index($0, ENVIRON["NAME"]) == 1 {
      rest = substr($0, length(ENVIRON["NAME"]) + 1, 1)
      if (rest != "{" && rest != " ") next
      for (i = 1; i <= n; i++) if (wanted[i] != "" && !index($0, wanted[i])) next
      sum += $NF
    }
    END { printf "%.10g\n", sum }'
}

# admin and label are an echo's address and its name in ferryman's metrics.
admin() { case $1 in a) echo "$LAB_ECHO_A" ;; b) echo "$LAB_ECHO_B" ;; c) echo "$LAB_ECHO_C" ;; esac; }
label() {
  case $1 in
    a) echo "upstream=\"$LAB_UPSTREAM_A\"" ;;
    b) echo "upstream=\"$LAB_UPSTREAM_B\"" ;;
    c) echo "upstream=\"$LAB_UPSTREAM_C\"" ;;
  esac
}

# circuit_is a open|closed|half_open
circuit_is() {
  local states=(closed open half_open)
  [ "${states[$(metric ferryman_circuit_state "$(label "$1")")]}" = "$2" ]
}
became() { metric ferryman_circuit_transitions_total "$(label "$1")" "to=\"$2\""; }

# reached a counts the requests that came as far as an echo; health checks are not counted.
reached() { curl -sf -m 5 "$(admin "$1")/metrics" | series echo_requests_total 'endpoint="echo"'; }

answers() { [ "$(curl -s -o /dev/null -m 5 -w '%{http_code}' "$LAB_PROXY$1")" = "$2" ]; }

# class URL-PART NAME is how many requests of the last report to a target had an outcome.
class() {
  printf '%s\n' "$OUT" | grep -A1 "^  Target .*$1" | tail -n 1 | sed -E 's/([0-9]),([0-9])/\1\2/g' | tr ',' '\n' |
    CLASS=$2 awk 'index($0, " " ENVIRON["CLASS"] " ") { n = $NF } END { print n + 0 }'
}

# bad URL-PART is how many bad requests the last report has for a target, and bad_span how many seconds lie
# between the first and the last.
bad_line() { printf '%s\n' "$OUT" | awk -v part="$1" '/^  Target /{here = index($0, part)} here && /^    bad /' | tr -d ','; }
bad() { bad_line "$1" | awk '{ n = $2 } END { print n + 0 }'; }
bad_span() { bad_line "$1" | awk '{ d = $8 - $5 } END { printf "%.3f\n", d }'; }

# keep_config notes down the configuration, to which the end of the script returns. What the lesson put
# beside it goes.
keep_config() { cat "$LAB_CONFIG" >"$WORK/config"; }

# reloads_over success|failure N
reloads_over() { more "$(metric ferryman_config_reloads_total "result=\"$1\"")" "$2"; }

healthy() { circuit_is a closed && circuit_is b closed && circuit_is c closed; }

# clean_up leaves the lab as it was found.
clean_up() {
  local code=$? name
  trap - EXIT
  [ -z "$JOB" ] || kill "$JOB" 2>/dev/null || true
  [ "$code" -eq 0 ] || "$LAB" status || true
  if [ -f "$WORK/config" ]; then
    for name in new link original.toml; do rm -f "$(dirname "$LAB_CONFIG")/$name"; done
  fi
  if [ -f "$WORK/config" ] && ! { cmp -s "$WORK/config" "$LAB_CONFIG" && [ ! -L "$LAB_CONFIG" ]; }; then
    cat "$WORK/config" >"$LAB_CONFIG.new"
    mv "$LAB_CONFIG.new" "$LAB_CONFIG"
  fi
  for name in a b c; do
    case $(curl -s -m 1 "$(admin "$name")/metrics" | grep -c '^echo_fault{.* 0$') in
      "$FAULTS") ;;
      *) task heal UPSTREAM="$name" || REASON="${REASON:-echo-$name stays broken}" code=1 ;;
    esac
  done
  if [ "$code" -eq 0 ]; then
    (eventually 20 'the lab is as it was: all circuits are closed' healthy) || REASON='a circuit stays open' code=1
  fi
  [ "$code" -eq 0 ] || printf 'FAIL: %s\n' "${REASON:-a command ended with status $code}"
  rm -rf "$WORK"
  exit "$code"
}

if [ "${BASH_SOURCE[1]:-}" ] && [ "${LIB_ONLY:-}" = "" ]; then
  if ! curl -sf -o /dev/null -m 5 "$LAB_METRICS/healthz"; then
    echo "no lab at $LAB_METRICS: start one with \`task demo\`"
    exit 1
  fi
  [ -x "$LAB" ] || (cd "$LAB_ROOT" && go build -o "$LAB" ./loadtest/cmd/lab)
  [ -x "$LAB_LOADTEST" ] || (cd "$LAB_ROOT" && GOWORK=off go build -o "$LAB_LOADTEST" ./loadtest/cmd/loadtest)
  FAULTS=$(curl -sf -m 5 "$LAB_ECHO_C/metrics" | grep -c '^echo_fault{')
  trap clean_up EXIT
  eventually 20 'all circuits are closed at the start' healthy
fi
