package ferryman

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// upload is the state that the coroutine of the request's body shares with the exchange's own.
type upload struct {
	out        outlet
	uploadDone netloop.Event // set when the coroutine has ended; nil: there is none
	read       atomic.Bool   // the client's body was read to its end, so its connection is in step
	sent       atomic.Bool   // the request was sent whole, so the upstream's is
	stopping   atomic.Bool   // the exchange ends the coroutine: what fails now is not the client's fault
	bodyErr    error         // why the client's body failed; read it once uploadDone is set

	mu         sync.Mutex // guards what follows, and the read deadline until seen is set
	seen       bool       // the final head is there: the header timeout is over
	tunnelling bool       // the connection became a tunnel: the end of the client's side is no departure
}

// send sends the request's head and as much of its body as is there, in one go. Where more is to
// come, another coroutine brings it up while this one awaits the answer.
func (e *exchange) send() error {
	timeout := e.snap.config.UpstreamTimeout
	e.out.reset(e.ex, e.up, timeout)
	if e.ask.bodiless {
		e.read.Store(true)
		if err := e.out.write(e.head); err != nil {
			return err
		}
		e.client.stow(e)
		e.wholeSent()
		return nil
	}
	e.client.guard(e.up)
	e.out.chunked = e.ask.chunked
	if err := e.out.add(e.head); err != nil {
		return err
	}
	e.client.stow(e)
	done, err := e.gather()
	if err != nil {
		return err
	}
	if done {
		e.read.Store(true)
		if err := e.out.end(nil); err != nil {
			return e.answerBehind(err)
		}
		e.wholeSent()
		return nil
	}
	if err := e.out.flush(); err != nil {
		return e.answerBehind(err)
	}
	if e.ask.expect {
		e.up.SetReadDeadline(e.ex.Now().Add(timeout))
	} else {
		e.up.SetReadDeadline(time.Time{})
	}
	e.uploadDone = e.ex.NewEvent()
	e.ex.Go(e.bringUp)
	return nil
}

// gather takes in what has arrived of the body as long as it fits beside the head.
func (e *exchange) gather() (done bool, err error) {
	for e.body.Started() && !e.body.Done() && e.out.n < outletSize/2 {
		if err := e.piece(); err != nil {
			return false, err
		}
	}
	return e.body.Done(), nil
}

// piece moves one read of the body into the outlet.
func (e *exchange) piece() error {
	room, err := e.out.room()
	if err != nil {
		return err
	}
	n, err := e.body.Read(room)
	e.out.commit(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return e.bodyFailed(err)
	}
	return nil
}

func (e *exchange) bodyFailed(err error) error {
	if !e.stopping.Load() {
		e.bodyErr = err
	}
	return err
}

// isBodyFault tells a body that is wrong or late from a client that is gone.
func isBodyFault(err error) bool {
	var syntax *h1.Error
	return errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded)
}

// bringUp is the coroutine of a request's body. It ends when the body was sent, when it failed, or
// when the exchange stops it.
func (e *exchange) bringUp() {
	defer e.uploadDone.Set()
	defer e.out.release()
	err := e.pump()
	switch {
	case err == nil:
		e.wholeSent()
	case e.stopping.Load():
	case e.bodyErr != nil:
		e.up.Abort() // wakes the coroutine that awaits the answer
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.setClock(e.ex.Now()) // the upstream takes nothing: that is its time-out
	default:
		_ = e.answerBehind(err)
	}
}

func (e *exchange) pump() error {
	for waiting := e.ask.expect; ; {
		if !e.body.Started() {
			if err := e.out.flush(); err != nil {
				return err
			}
			if err := e.body.Await(); err != nil {
				return e.bodyFailed(err)
			}
		}
		if err := e.piece(); err != nil {
			return err
		}
		if e.body.Done() {
			e.read.Store(true)
			return e.out.end(nil)
		}
		if waiting {
			waiting = false
			e.setClock(time.Time{}) // the client goes on: now its pauses do not count
		}
	}
}

// wholeSent starts the header timeout, and from here on a client that ends its side has gone away.
func (e *exchange) wholeSent() {
	e.sent.Store(true)
	deadline := e.ex.Now().Add(e.snap.config.UpstreamTimeout)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.seen {
		e.up.SetReadDeadline(deadline)
	}
	if !e.tunnelling {
		e.client.guard(e.up)
	}
}

// restartClock is for the moment that the upstream asked for the body: it is the client's turn.
func (e *exchange) restartClock() {
	if b, ok := e.body.(*probeBody); ok {
		b.ask()
	}
	if !e.sent.Load() {
		e.setClock(time.Time{})
	}
}

// setClock moves the header timeout as long as no final head is there.
func (e *exchange) setClock(deadline time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.seen {
		e.up.SetReadDeadline(deadline)
	}
}

// headSeen ends the header timeout.
func (e *exchange) headSeen() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = true
}

// answerBehind is for a request that the upstream takes no more of: its answer may be there
// already, and counts. What does not come soon does not come.
func (e *exchange) answerBehind(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	e.setClock(e.ex.Now().Add(min(time.Second, e.snap.config.UpstreamTimeout)))
	return nil
}

// uploaded waits for the coroutine of the request's body, and returns whether the request was sent whole.
func (e *exchange) uploaded() bool {
	if e.uploadDone != nil {
		e.uploadDone.Wait()
	}
	return e.sent.Load()
}

// endUpload stops the coroutine of the request's body and waits for it.
func (e *exchange) endUpload() {
	if e.uploadDone == nil {
		return
	}
	if !e.sent.Load() {
		e.stopping.Store(true)
		e.client.stopBody()
		if e.up != nil {
			e.up.Abort()
		}
	}
	e.uploadDone.Wait()
	e.uploadDone = nil
}
