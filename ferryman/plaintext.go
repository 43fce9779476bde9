package ferryman

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"

	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

var faultPlaintext = &fault{400, "this port speaks TLS: use https://", "plaintext", neutral}

// refusePlaintext answers a client whose handshake has failed for being a request, in plaintext as it came.
func (p *Proxy) refusePlaintext(ex netloop.Executor, raw netloop.Conn, err error) {
	var record tls.RecordHeaderError
	if !errors.As(err, &record) || record.Conn == nil || !beginsRequest(string(record.RecordHeader[:])) {
		return
	}
	p.countReply(nil, faultPlaintext)
	head := string(record.RecordHeader[:]) == "HEAD "
	if _, err := raw.Write(faultPlaintext.appendReply(nil, p.date(ex.Now()), 0, head, true)); err != nil {
		return
	}
	p.linger(ex, h1.NewReader(raw), raw, lingerTime)
}

var methods = []string{"GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "PATCH ", "OPTIONS ", "TRACE ", "CONNECT ", "PRI "}

// beginsRequest tells a request from garbage by the five bytes that stand for the head of a record.
func beginsRequest(b string) bool {
	return slices.ContainsFunc(methods, func(m string) bool { return strings.HasPrefix(b, m) || strings.HasPrefix(m, b) })
}
