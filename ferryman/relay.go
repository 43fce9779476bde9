package ferryman

import (
	"errors"
	"io"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// relay passes the final head and the body down to the client. From here on trouble shows as
// truncation only.
func (e *exchange) relay() {
	now := e.ex.Now()
	e.route.metrics.Head(now.Sub(e.start))
	e.route.metrics.Answered(e.resp.Status)
	switch e.resp.Status {
	case 502:
		e.judge(failure, "request answered with 502")
	case 503:
		e.judge(failure, "request answered with 503")
	case 504:
		e.judge(failure, "request answered with 504")
	default:
		e.judge(success, "request answered")
	}
	if e.resp.Status == 101 {
		e.tunnel()
		return
	}
	e.resp.ToHead = e.ask.head
	e.framing, e.length = e.resp.Framing()
	e.unread = e.resp.Status == 204 && (e.resp.DeclaredLength() > 0 || e.resp.DeclaresChunked())
	if e.resp.Status == 205 { // RFC 9110 section 15.3.6: no content, whatever the upstream sends
		e.unread = e.framing != h1.None
		e.framing, e.length = h1.None, 0
	}
	if err := e.client.begin(e); err != nil {
		e.abandon()
		return
	}
	e.down.Reset(&e.up.In, e.framing, e.length)
	if err := e.stream(); err != nil {
		e.abandon()
		return
	}
	e.complete = true
	e.giveBack()
}

// stream moves the body. What is there goes out in one piece, as far as a buffer takes it; before it
// waits for more it has sent what it had, and holds no buffer.
func (e *exchange) stream() error {
	for !e.down.Done() {
		if !e.down.Started() && e.up.SeemsQuiet() {
			if err := e.client.flush(); err != nil {
				return err
			}
			e.limitPause()
			if err := e.down.Await(); err != nil {
				return err
			}
		}
		room, err := e.client.room()
		if err != nil {
			return err
		}
		if !e.down.Started() {
			e.limitPause()
		}
		n, err := e.down.Read(room)
		if err := e.client.commit(n); err != nil {
			return err
		}
		if err != nil && !errors.Is(err, io.EOF) {
			e.trouble = err
			return err
		}
	}
	return e.client.end(e.down.Trailer())
}

// limitPause limits how long the upstream may pause within the body. The header timeout is over.
func (e *exchange) limitPause() {
	e.up.SetReadDeadline(deadline(e.ex, e.snap.config.BodyIdleTimeout))
}

// abandon ends a response that cannot be completed. The verdict was given with the head.
func (e *exchange) abandon() {
	_ = e.client.flush() // what came before the trouble
	if e.client.gone() {
		e.route.metrics.ClientAborted()
	} else if e.trouble != nil {
		e.p.logFailure(e.route.up, &fault{status: e.resp.Status, cause: "response cut short"}, e.trouble)
	}
	e.endUpload()
	e.drop()
}

// lastBytes is how long the end of an upload may take once the answer to it was relayed.
const lastBytes = 100 * time.Millisecond

// giveBack returns the upstream's connection to its pool if both messages went through whole.
func (e *exchange) giveBack() {
	if e.read.Load() && e.uploadDone != nil { // the last bytes are on their way: they get a moment
		e.up.SetWriteDeadline(e.ex.Now().Add(lastBytes))
		e.uploadDone.Wait()
	}
	whole := e.sent.Load()
	e.endUpload()
	if !whole {
		e.drop()
		return
	}
	e.client.guard(nil)
	if e.resp.Close() || e.framing == h1.UntilClose || e.unread {
		e.drop()
		return
	}
	if e.framing == h1.None && e.resp.DeclaredLength() != 0 {
		e.up.Doubt()
	}
	e.up.Put(e.ex)
	e.up = nil
}
