package ferryman

import (
	"net/http"
	"time"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// exchangeH1 is an exchange with the request head that an HTTP/1.1 client needs beside it.
type exchangeH1 struct {
	exchange
	req h1.Request
}

// borrow and giveBack keep exchanges for reuse, so that a request allocates nothing.
func (p *Proxy) borrow() *exchangeH1 { return p.exchanges.Get().(*exchangeH1) }

// maxScratch is the largest head buffer that is worth keeping, in bytes.
const maxScratch = 8 << 10

func (p *Proxy) giveBack(e *exchangeH1) {
	if cap(e.head) > maxScratch {
		e.head = nil
	}
	p.exchanges.Put(e)
}

// prepare makes e ready for another request.
func (e *exchange) prepare(p *Proxy, ex netloop.Executor, snap *snapshot, client front, body requestBody) {
	e.p, e.ex, e.snap, e.client, e.body = p, ex, snap, client, body
	e.start = ex.Now()
	e.route, e.up, e.trouble = nil, nil, nil
	e.heard, e.judged, e.complete = false, false, false
	e.uploadDone, e.bodyErr, e.seen, e.tunnelling = nil, nil, false, false
	e.read.Store(false)
	e.sent.Store(false)
	e.stopping.Store(false)
}

// countReply counts an answer of ferryman's own.
func (p *Proxy) countReply(r *routeState, f *fault) {
	if r == nil {
		p.metrics.Unrouted().Answered(f.status)
		return
	}
	r.metrics.Answered(f.status)
}

// dateText is a Date field's value and the second that it holds for.
type dateText struct {
	second int64
	text   string
}

// date is the value of a Date field (RFC 9110 section 6.6.1), made once a second.
func (p *Proxy) date(now time.Time) string {
	second := now.Unix()
	if d := p.dated.Load(); d != nil && d.second == second {
		return d.text
	}
	d := &dateText{second, now.UTC().Format(http.TimeFormat)}
	p.dated.Store(d)
	return d.text
}
