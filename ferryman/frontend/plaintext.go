package frontend

import (
	"crypto/tls"
	"errors"
	"slices"
	"strings"

	"github.com/Bunty9/ferryman/ferryman/exchange"
	"github.com/Bunty9/ferryman/ferryman/h1"
	"github.com/Bunty9/ferryman/ferryman/netloop"
)

// refusePlaintext answers a client whose handshake has failed for being a request, in plaintext as it came.
func (s *Server) refusePlaintext(ex netloop.Executor, raw netloop.Conn, err error) {
	var record tls.RecordHeaderError
	if !errors.As(err, &record) || record.Conn == nil || !beginsRequest(string(record.RecordHeader[:])) {
		return
	}
	s.shared.Unrouted.Answered(exchange.PlaintextForTLS.Status)
	head := string(record.RecordHeader[:]) == "HEAD "
	if _, err := raw.Write(appendOutcome(nil, exchange.PlaintextForTLS, s.date(ex.Now()), 0, head, true)); err != nil {
		return
	}
	s.linger(ex, h1.NewReader(raw), raw, lingerTime)
}

var methods = []string{"GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "PATCH ", "OPTIONS ", "TRACE ", "CONNECT ", "PRI "}

// beginsRequest tells a request from garbage by the five bytes that stand for the head of a record.
func beginsRequest(b string) bool {
	return slices.ContainsFunc(methods, func(m string) bool { return strings.HasPrefix(b, m) || strings.HasPrefix(m, b) })
}
