package exchange

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
	out         h1.Writer
	uploadEnded netloop.Event // set when the coroutine has ended; nil: there is none
	read        atomic.Bool   // the request's body was read to its end: the client's connection can be reused
	sent        atomic.Bool   // the request was sent completely: the upstream's connection can be reused
	stopping    atomic.Bool   // the exchange ends the coroutine: what fails now is not the client's fault
	bodyErr     error         // why the client's body failed; read it once uploadEnded is set

	mu         sync.Mutex // guards what follows, and the read deadline until seen is set
	seen       bool       // the final response head has arrived: its time-out is over
	tunnelling bool       // the connection became a tunnel: a FIN from the client does not mean that it left
}

func (u *upload) reset() {
	u.uploadEnded, u.bodyErr, u.seen, u.tunnelling = nil, nil, false, false
	u.read.Store(false)
	u.sent.Store(false)
	u.stopping.Store(false)
}

// RequestRead reports whether the request's body was read to its end, so that its connection is in step.
func (u *upload) RequestRead() bool { return u.read.Load() }

// Tunnelling reports whether the connection has become a tunnel.
func (u *upload) Tunnelling() bool { return u.tunnelling }

// send sends the request's head and as much of its body as is there, in one go. Where more is to
// come, another coroutine brings it up while this one awaits the response.
func (e *Exchange) send() error {
	timeout := e.snap.UpstreamTimeout
	e.out.Reset(e.ex, e.up, timeout)
	if e.Request.Bodiless {
		e.read.Store(true)
		if err := e.out.Send(e.Head); err != nil {
			return err
		}
		e.frontend.Stow(e)
		e.wholeSent()
		return nil
	}
	e.frontend.Guard(e.up)
	e.out.Chunked = e.Request.Chunked
	if err := e.out.Append(e.Head); err != nil {
		return err
	}
	e.frontend.Stow(e)
	done, err := e.gather()
	if err != nil {
		return err
	}
	if done {
		e.read.Store(true)
		if err := e.out.End(nil); err != nil {
			return e.responseBehind(err)
		}
		e.wholeSent()
		return nil
	}
	if err := e.out.Flush(); err != nil {
		return e.responseBehind(err)
	}
	if e.Request.Expect {
		e.up.SetReadDeadline(e.ex.Now().Add(timeout))
	} else {
		e.up.SetReadDeadline(time.Time{})
	}
	e.uploadEnded = e.ex.NewEvent()
	e.ex.Go(e.uploadRest)
	return nil
}

// gather takes in what has arrived of the body as long as it fits beside the head.
func (e *Exchange) gather() (done bool, err error) {
	for e.body.Started() && !e.body.Done() && len(e.out.Waiting()) < h1.BufferSize/2 {
		if err := e.piece(); err != nil {
			return false, err
		}
	}
	return e.body.Done(), nil
}

// piece moves one read of the body into the message writer.
func (e *Exchange) piece() error {
	room, err := e.out.Free()
	if err != nil {
		return err
	}
	n, err := e.body.Read(room)
	e.out.Written(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return e.bodyFailed(err)
	}
	return nil
}

func (e *Exchange) bodyFailed(err error) error {
	if !e.stopping.Load() {
		e.bodyErr = err
	}
	return err
}

// isBodyFault distinguishes a body that is wrong or late from a client that is gone.
func isBodyFault(err error) bool {
	var syntax *h1.Error
	return errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded)
}

// uploadRest is the coroutine of a request's body. It ends when the body was sent, when it failed, or
// when the exchange stops it.
func (e *Exchange) uploadRest() {
	defer e.uploadEnded.Set()
	defer e.out.Release()
	err := e.pump()
	switch {
	case err == nil:
		e.wholeSent()
	case e.stopping.Load():
	case e.bodyErr != nil:
		e.up.Abort() // wakes the coroutine that awaits the response
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.setHeadDeadline(e.ex.Now()) // the upstream has stopped reading: that is its time-out
	default:
		_ = e.responseBehind(err)
	}
}

func (e *Exchange) pump() error {
	for waiting := e.Request.Expect; ; {
		if !e.body.Started() {
			if err := e.out.Flush(); err != nil {
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
			return e.out.End(nil)
		}
		if waiting {
			waiting = false
			e.setHeadDeadline(time.Time{}) // the client goes on: now its pauses do not count
		}
	}
}

// wholeSent starts the response-head time-out; from here on a FIN from the client counts as leaving.
func (e *Exchange) wholeSent() {
	e.sent.Store(true)
	deadline := e.ex.Now().Add(e.snap.UpstreamTimeout)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.seen {
		e.up.SetReadDeadline(deadline)
	}
	if !e.tunnelling {
		e.frontend.Guard(e.up)
	}
}

// awaitBody is called on a 100 (Continue): the upstream's time-out stops, for the client must send now.
func (e *Exchange) awaitBody() {
	if b, ok := e.body.(*probeBody); ok {
		b.ask()
	}
	if !e.sent.Load() {
		e.setHeadDeadline(time.Time{})
	}
}

// setHeadDeadline moves the header timeout as long as no final head is there.
func (e *Exchange) setHeadDeadline(deadline time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.seen {
		e.up.SetReadDeadline(deadline)
	}
}

// headSeen ends the header timeout.
func (e *Exchange) headSeen() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = true
}

// responseBehind handles a failed write to the upstream: it may have responded early (a 413, say), so the
// response's head gets one more second.
func (e *Exchange) responseBehind(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	e.setHeadDeadline(e.ex.Now().Add(min(time.Second, e.snap.UpstreamTimeout)))
	return nil
}

// uploaded waits for the coroutine of the request's body, and returns whether the request was sent whole.
func (e *Exchange) uploaded() bool {
	if e.uploadEnded != nil {
		e.uploadEnded.Wait()
	}
	return e.sent.Load()
}

// endUpload stops the coroutine of the request's body and waits for it.
func (e *Exchange) endUpload() {
	if e.uploadEnded == nil {
		return
	}
	if !e.sent.Load() {
		e.stopping.Store(true)
		e.frontend.StopBody()
		if e.up != nil {
			e.up.Abort()
		}
	}
	e.uploadEnded.Wait()
	e.uploadEnded = nil
}
