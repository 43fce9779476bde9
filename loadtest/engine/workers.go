package engine

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/loadtest/pacer"
	"github.com/Bunty9/ferryman/loadtest/result"
)

// pauseAfterFailure keeps a closed loop from dialling a dead target in a tight loop.
const pauseAfterFailure = 10 * time.Millisecond

// transport is a connection of the goroutine executor. Workers that share one share it whole.
type transport interface {
	// open connects, unless it is connected.
	open(deadline time.Time) error
	// connected reports whether a request can be sent without dialling.
	connected() bool
	// exchange sends a request and reads its answer. What it leaves unusable it closes.
	exchange(deadline time.Time) exchanged
	close()
}

// exchanged is what became of one request.
type exchanged struct {
	class  result.Class
	status int
	bytes  int64
}

// workers is the executor with a goroutine per connection, or per HTTP/2 stream.
type workers struct {
	r          *Runner
	lanes      []*workLane
	transports []transport
	all        []*worker

	mu       sync.Mutex // guards recorder
	recorder *result.Recorder
}

// workLane is a lane whose waiting requests are tokens in a channel: whoever takes one sends the
// next request.
type workLane struct {
	pacer.Lane
	due  chan struct{}
	next atomic.Int64
}

type worker struct {
	ex     *workers
	lane   *workLane
	target *target
	conn   transport
	free   time.Duration // since when it has nothing to do
}

func newWorkers(r *Runner) *workers {
	ex := &workers{r: r, recorder: r.collector.Recorder(0)}
	for _, p := range r.schedule.Lanes() {
		// Tokens have no size: a channel with room for all of them is free.
		ln := &workLane{Lane: p, due: make(chan struct{}, r.requests+1)}
		ex.lanes = append(ex.lanes, ln)
		t := r.targets[p.Target]
		for range p.Connections {
			conn := r.newTransport(t)
			ex.transports = append(ex.transports, conn)
			for range r.plan.Streams {
				ex.all = append(ex.all, &worker{ex: ex, lane: ln, target: t, conn: conn})
			}
		}
	}
	return ex
}

func (r *Runner) newTransport(t *target) transport {
	if r.plan.Protocol == HTTP2 {
		return newHTTP2Transport(r, t)
	}
	return &http1Transport{r: r, target: t, buffer: make([]byte, 16<<10)}
}

// connect dials all at once, a burst at a time.
func (ex *workers) connect(ctx context.Context) (established int, err error) {
	const burst = 32
	slots := make(chan struct{}, burst)
	failures := make([]error, len(ex.transports))
	deadline := time.Now().Add(connectLimit)
	var wg sync.WaitGroup
	for i, t := range ex.transports {
		slots <- struct{}{}
		if ctx.Err() != nil {
			failures[i] = ctx.Err()
			<-slots
			continue
		}
		wg.Go(func() {
			failures[i] = t.open(deadline)
			<-slots
		})
	}
	wg.Wait()
	for _, failure := range failures {
		if failure == nil {
			established++
		} else {
			err = failure
		}
	}
	return established, err
}

func (ex *workers) run() {
	var wg sync.WaitGroup
	for _, w := range ex.all {
		if ex.r.plan.Capacity {
			wg.Go(w.loop)
		} else {
			wg.Go(w.work)
		}
	}
	stopFlushing := make(chan struct{})
	flushed := make(chan struct{})
	go ex.flush(stopFlushing, flushed)
	if !ex.r.plan.Capacity {
		ex.dispatch()
	}
	wg.Wait()
	close(stopFlushing)
	<-flushed
}

// flush hands over what was counted until stop is closed.
func (ex *workers) flush(stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			ex.mu.Lock()
			ex.recorder.Flush()
			ex.mu.Unlock()
		case <-stop:
			return
		}
	}
}

// dispatch puts a token into the lane of each request when it is due. It has a thread of its own:
// the runtime's timers are too coarse.
func (ex *workers) dispatch() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() {
		for _, ln := range ex.lanes {
			close(ln.due)
		}
	}()
	r := ex.r
	for k := range r.requests {
		due := r.schedule.Due(k)
		for {
			now := time.Since(r.start)
			if due >= r.end() {
				return
			}
			if now >= due {
				break
			}
			pause(min(due-now, sweepEvery))
		}
		ex.lanes[r.schedule.LaneOf(k)].due <- struct{}{}
	}
}

// work sends the lane's requests as they come due.
func (w *worker) work() {
	r := w.ex.r
	for range w.lane.due {
		k := w.lane.Request(w.lane.next.Add(1) - 1)
		w.serve(r.schedule.Due(k))
	}
}

// loop sends one request after the other: the closed loop.
func (w *worker) loop() {
	r := w.ex.r
	for {
		now := time.Since(r.start)
		if now >= r.end() {
			return
		}
		if !w.serve(now) {
			pause(pauseAfterFailure)
		}
	}
}

// serve sends the request that is due at intended, records it, and reports whether it was answered.
func (w *worker) serve(intended time.Duration) (answered bool) {
	r := w.ex.r
	now := time.Since(r.start)
	s := result.Sample{Target: w.target.index, Intended: intended, Sent: now, Lag: result.NoLag}
	if now > r.end()+r.plan.Timeout {
		s.Class, s.Sent, s.Done = result.Timeout, result.NotSent, now
		w.record(s)
		return false
	}
	deadline := r.start.Add(now + r.plan.Timeout)
	if w.conn.connected() {
		s.Lag = now - max(intended, w.free)
	} else if err := w.conn.open(deadline); err != nil {
		s.Class = result.Connect
		if errors.Is(err, context.DeadlineExceeded) {
			s.Class = result.Timeout
		}
		w.record(s)
		return false
	}
	x := w.conn.exchange(deadline)
	s.Class, s.Status, s.Bytes = x.class, x.status, x.bytes
	w.record(s)
	return x.status != 0
}

func (w *worker) record(s result.Sample) {
	w.free = time.Since(w.ex.r.start)
	if s.Done == 0 {
		s.Done = w.free
	}
	w.ex.mu.Lock()
	w.ex.recorder.Record(s)
	w.ex.mu.Unlock()
}

func (ex *workers) close() {
	for _, t := range ex.transports {
		t.close()
	}
}
