package echo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"

	"github.com/valyala/fasthttp"
)

// Description is the JSON body that tells what arrived. Bytes that are no UTF-8 show as U+FFFD.
type Description struct {
	Instance string `json:"instance"`
	// Sequence counts the requests that this instance described, from 1.
	Sequence uint64 `json:"sequence"`
	Method   string `json:"method"`
	// Target is the request target byte for byte, query included.
	Target string `json:"target"`
	Proto  string `json:"proto"`
	Host   string `json:"host"`
	Remote string `json:"remote"`
	// Fields are name and value of each header line, in the order and spelling of arrival.
	Fields     [][2]string `json:"fields"`
	BodyLength int64       `json:"body_length"`
	BodySHA256 string      `json:"body_sha256"`
}

func (s *Server) describe(ctx *fasthttp.RequestCtx) {
	h := &ctx.Request.Header
	d := Description{
		Instance: s.instance,
		Sequence: s.sequence.Add(1),
		Method:   string(h.Method()),
		Target:   string(h.RequestURI()),
		Proto:    string(h.Protocol()),
		Host:     string(h.Host()),
		Remote:   ctx.RemoteAddr().String(),
		Fields:   fields(h.RawHeaders()),
	}
	sum := sha256.New()
	if body := ctx.RequestBodyStream(); body != nil {
		n, err := io.Copy(sum, body)
		if err != nil {
			ctx.Error("the request's body broke off\n", fasthttp.StatusBadRequest)
			ctx.SetConnectionClose()
			return
		}
		d.BodyLength = n
	}
	d.BodySHA256 = hex.EncodeToString(sum.Sum(nil))
	text, err := json.Marshal(d)
	if err != nil {
		panic("echo: a description is always JSON: " + err.Error())
	}
	ctx.Response.Header.SetContentType("application/json")
	ctx.Response.SetBody(append(text, '\n'))
}

// fields splits raw header lines into names and values without the white space around them.
func fields(raw []byte) [][2]string {
	list := [][2]string{}
	for line := range bytes.Lines(raw) {
		name, value, ok := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
		if ok {
			list = append(list, [2]string{string(name), string(bytes.Trim(value, " \t"))})
		}
	}
	return list
}
