package logqueue

import (
	"sync"
	"time"
)

// queue is a bounded queue of chunks. Put never waits: the lock is held for moving memory, never over a
// delivery.
type queue[T any] struct {
	limit   int                    // items that wait at most
	keep    int                    // items that a buffer may hold on to while nothing waits
	lines   func([]T) uint64       // how many lines a chunk is
	deliver func([]T) (failed []T) // may take for ever; failed is lost
	notice  func(lost uint64) bool // tells that lines were lost before what comes next; false: could not
	beat    <-chan time.Time       // nil, or when onBeat is due, as it is at the start
	onBeat  func()
	work    chan struct{} // something waits
	ended   chan struct{} // closed when the goroutine has ended

	mu                  sync.Mutex // guards what follows
	waiting, spare      []T
	accepted, delivered uint64        // items so far
	lost, untold        uint64        // lines: so far, and of these not told yet
	step                chan struct{} // closed after the next delivery; nil: nobody waits for it
	closed              bool
}

func (q *queue[T]) start() {
	q.work, q.ended = make(chan struct{}, 1), make(chan struct{})
	go q.run()
}

// put adds a chunk, or drops all of it.
func (q *queue[T]) put(chunk ...T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting)+len(chunk) > q.limit {
		q.lose(chunk)
		return
	}
	q.waiting = append(q.waiting, chunk...)
	q.accepted += uint64(len(chunk))
	q.wake()
}

func (q *queue[T]) wake() {
	select {
	case q.work <- struct{}{}:
	default:
	}
}

// lose counts what is dropped. The caller has the lock.
func (q *queue[T]) lose(chunk []T) {
	n := q.lines(chunk)
	q.lost += n
	q.untold += n
}

func (q *queue[T]) run() {
	defer close(q.ended)
	if q.onBeat != nil {
		q.onBeat()
	}
	for {
		for batch, untold := q.take(); batch != nil; batch, untold = q.take() {
			failed := q.deliver(batch)
			if len(failed) == 0 && untold > 0 && q.notice(untold) {
				untold = 0
			}
			q.done(batch, failed, untold)
		}
		select {
		case _, open := <-q.work:
			if !open {
				return
			}
		case <-q.beat:
			q.onBeat()
		}
	}
}

// take is all that waits, and how many lines were lost so far that nobody was told of: they come after it.
func (q *queue[T]) take() (batch []T, untold uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil, 0
	}
	batch, untold = q.waiting, q.untold
	q.waiting, q.spare, q.untold = q.spare[:0], nil, 0
	return batch, untold
}

// done counts a batch as delivered, but for what failed, and keeps its memory if it is little.
func (q *queue[T]) done(batch, failed []T, untold uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.delivered += uint64(len(batch))
	q.untold += untold
	q.lose(failed)
	clear(batch)
	if cap(batch) <= q.keep {
		q.spare = batch
	}
	if q.step != nil {
		close(q.step)
		q.step = nil
	}
}

// flush waits until all that was put is delivered or lost, or for limit. It reports whether it is.
func (q *queue[T]) flush(limit <-chan time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for until := q.accepted; q.delivered < until; {
		if q.step == nil {
			q.step = make(chan struct{})
		}
		step := q.step
		q.mu.Unlock()
		select {
		case <-step:
			q.mu.Lock()
		case <-limit:
			q.mu.Lock()
			return false
		}
	}
	return true
}

// close ends the queue: what is put from now on is lost. It waits for what was put before and for the
// goroutine, at most for d: one that is held by a delivery stays behind.
func (q *queue[T]) close(d time.Duration) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return
	}
	q.closed = true
	close(q.work)
	q.mu.Unlock()
	select {
	case <-q.ended:
	case <-time.After(d):
	}
}

func (q *queue[T]) lostLines() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}
