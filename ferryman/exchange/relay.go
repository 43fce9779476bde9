package exchange

import (
	"errors"
	"io"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/tunnel"
)

// relay passes the final head and the body down to the client. From here on upstreamErr shows as
// truncation only.
func (e *Exchange) relay() {
	now := e.ex.Now()
	e.route.Counters.Head(now.Sub(e.start))
	e.route.Counters.Answered(e.Response.Status)
	switch e.Response.Status {
	case 502:
		e.judge(failure, "request answered with 502")
	case 503:
		e.judge(failure, "request answered with 503")
	case 504:
		e.judge(failure, "request answered with 504")
	default:
		e.judge(success, "request answered")
	}
	if e.Response.Status == 101 {
		e.tunnel()
		return
	}
	e.Response.ToHead = e.Request.Head
	e.Framing, e.Length = e.Response.Framing()
	e.unread = e.Response.Status == 204 && (e.Response.DeclaredLength() > 0 || e.Response.DeclaresChunked())
	if e.Response.Status == 205 { // RFC 9110 section 15.3.6: no content, whatever the upstream sends
		e.unread = e.Framing != h1.None
		e.Framing, e.Length = h1.None, 0
	}
	if err := e.frontend.Begin(e); err != nil {
		e.abandon()
		return
	}
	e.down.Reset(&e.up.In, e.Framing, e.Length)
	if err := e.stream(); err != nil {
		e.abandon()
		return
	}
	e.complete = true
	e.returnUpstream()
}

// stream moves the body. What is there goes out in one piece, as far as a buffer takes it; before it
// waits for more it has sent what it had, and holds no buffer.
func (e *Exchange) stream() error {
	for !e.down.Done() {
		if !e.down.Started() && e.up.SeemsQuiet() {
			if err := e.frontend.Flush(); err != nil {
				return err
			}
			e.limitPause()
			if err := e.down.Await(); err != nil {
				e.upstreamErr = err
				return err
			}
		}
		free, err := e.frontend.Free()
		if err != nil {
			return err
		}
		if !e.down.Started() {
			e.limitPause()
		}
		n, err := e.down.Read(free)
		e.frontend.Written(n)
		if err != nil && !errors.Is(err, io.EOF) {
			e.upstreamErr = err
			return err
		}
	}
	return e.frontend.End(e.down.Trailer())
}

// limitPause limits how long the upstream may pause within the body. It replaces the response-head time-out.
func (e *Exchange) limitPause() {
	var at time.Time
	if d := e.snap.BodyIdleTimeout; d > 0 {
		at = e.ex.Now().Add(d)
	}
	e.up.SetReadDeadline(at)
}

// abandon ends a response that cannot be completed. The verdict was given with the head.
func (e *Exchange) abandon() {
	_ = e.frontend.Flush() // what came before the upstreamErr
	if e.frontend.Gone() {
		e.route.Counters.ClientAborted()
	} else if e.upstreamErr != nil {
		e.shared.Observer.RequestFailed(e.route.Upstream, e.Response.Status, "response cut short", e.upstreamErr)
	}
	e.endUpload()
	e.drop()
}

// lastBytes is the grace period for the end of an upload after its response was relayed.
const lastBytes = 100 * time.Millisecond

// returnUpstream puts the upstream's connection back into its pool if both messages went through whole.
func (e *Exchange) returnUpstream() {
	if e.read.Load() && e.uploadEnded != nil { // the body was read, and its last write is not done
		e.up.SetWriteDeadline(e.ex.Now().Add(lastBytes))
		e.uploadEnded.Wait()
	}
	whole := e.sent.Load()
	e.endUpload()
	if !whole {
		e.drop()
		return
	}
	e.frontend.Guard(nil)
	if e.Response.Close() || e.Framing == h1.UntilClose || e.unread {
		e.drop()
		return
	}
	if e.Framing == h1.None && e.Response.DeclaredLength() != 0 {
		e.up.Doubt()
	}
	e.up.Put(e.ex)
	e.up = nil
}

// tunnel joins client and upstream after a 101 (RFC 9110 section 7.8). What the client sends follows the body of its
// request, which may still be on its way.
func (e *Exchange) tunnel() {
	e.mu.Lock()
	e.tunnelling = true
	e.mu.Unlock()
	e.frontend.Guard(nil)
	if e.frontend.Begin(e) != nil || e.frontend.Flush() != nil {
		e.abandon()
		return
	}
	conn, raw, in := e.frontend.Hijack()
	client := tunnel.End{Conn: conn, Raw: raw, In: in}
	tunnel.Join(e.ex, e.snap.BodyIdleTimeout, client, e.uploaded, tunnel.End{Conn: e.up, Raw: e.up, In: &e.up.In})
	e.drop()
}
