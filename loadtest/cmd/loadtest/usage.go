package main

// usage fits one screen; a test counts.
const usage = `Usage: loadtest [options] URL [URL...]       several URLs share the rate
       loadtest healthcheck ADDR             is the one that serves ADDR alive?

  -c N         connections (10)              -t N   loops (as the rate needs)
  -R N         requests/s over all; 20k, 1M  -d D   how long it measures (10s)
  -H "N: V"    header, repeatable          -L, --latency   detailed percentiles
  --warmup D   same rate before it, uncounted   --timeout D   per request (2s)
  --mode M     pinned: request k on connection k mod c, a busy one queues, as in
               wrk2 (default); pool: any idle one
  --method M   GET, or POST with a body      --body TEXT or --body @FILE
  --expect-status N   the right one (200-399)       --expect-body TEXT or @FILE
  --closed     no rate: how much can it take? Capacity only, no latencies
  --no-keepalive   a connection per request  --h2   HTTP/2; --streams N on each
  --insecure   take any certificate          --engine E   loops or goroutines

Budgets, missing one is FAIL (exit 1):
  --max-p50 D  --max-p99 D  --max-p999 D     response time: done - intended
  --max-errors N or N% or any (0)            --min-rate N   right answers/s
  --max-refusal D   the proxy's own 503 is bad if slower (50ms)
INVALID (exit 3), whatever the target did: under 99% of the rate sent, fewer
than c connections, send lag p99 > --max-lag (1ms), stolen > --max-steal (2%)

Output: text, and with a file name or - for standard output
  --json F   --hgrm F   --svg F   --html F
  --metrics-bind ADDR   /metrics while it runs      --quiet   no live line
  --control ADDR   POST /mark/NAME, POST /stop, GET /status
  --allow-remote   targets that are neither loopback nor private

wrk2's -s is not taken: --method, --header (-H) and --body do what most do.
`
