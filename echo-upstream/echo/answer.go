package echo

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

var (
	echoBody   = []byte("echo: the quick brown fox jumps over the lazy dog, again and over\n")
	healthBody = []byte("ok\n")
	textPlain  = []byte("text/plain; charset=utf-8")
)

// answer fills in the response of an endpoint that is under no fault.
func (s *Server) answer(ctx *fasthttp.RequestCtx, e endpoint, n int) {
	if e == describeEndpoint {
		s.describe(ctx)
		return
	}
	drain(ctx)
	switch e {
	case echoEndpoint:
		plain(ctx, echoBody)
	case healthEndpoint:
		plain(ctx, healthBody)
	case bytesEndpoint:
		serveBytes(ctx, n)
	case chunkedEndpoint:
		ctx.Response.Header.SetContentTypeBytes(textPlain)
		ctx.Response.SetBodyStream(&alphabet{left: n, most: max(1, min(n/4, 16<<10))}, -1)
	case streamEndpoint:
		s.serveStream(ctx)
	case statusEndpoint:
		serveStatus(ctx, n)
	case trailersEndpoint:
		serveTrailers(ctx)
	}
}

// plain answers with bytes that are never written to.
func plain(ctx *fasthttp.RequestCtx, body []byte) {
	ctx.Response.Header.SetContentTypeBytes(textPlain)
	ctx.Response.SetBodyRaw(body)
}

// fixedAnswer is what the data server answers to GET /echo, with the date of now.
func (s *Server) fixedAnswer(last bool) []byte {
	var ctx fasthttp.RequestCtx
	plain(&ctx, echoBody)
	s.sign(&ctx)
	ctx.Response.Header.SetServer(s.data.Name)
	if last {
		ctx.Response.SetConnectionClose()
	}
	var b bytes.Buffer
	_, _ = ctx.Response.WriteTo(&b) // a buffer takes everything
	return b.Bytes()
}

// drain reads a request's body to its end, so that the connection can be used again.
func drain(ctx *fasthttp.RequestCtx) {
	if body := ctx.RequestBodyStream(); body != nil {
		_, _ = io.Copy(io.Discard, body) // a broken body also breaks the connection, which the server notices
	}
}

func serveBytes(ctx *fasthttp.RequestCtx, n int) {
	if n <= len(alphabetBlock) {
		plain(ctx, alphabetBlock[:n])
		return
	}
	ctx.Response.Header.SetContentTypeBytes(textPlain)
	ctx.Response.SetBodyStream(&alphabet{left: n, most: n}, n)
}

func serveStatus(ctx *fasthttp.RequestCtx, n int) {
	if n < 200 || n > 599 {
		ctx.Error("status must be between 200 and 599\n", fasthttp.StatusBadRequest)
		return
	}
	plain(ctx, fmt.Appendf(nil, "status %d\n", n))
	ctx.SetStatusCode(n)
}

// ChecksumTrailer is the field that /trailers sends after its body: the SHA-256 of the body in hex.
const ChecksumTrailer = "X-Echo-Checksum"

func serveTrailers(ctx *fasthttp.RequestCtx) {
	sum := sha256.Sum256(echoBody)
	ctx.Response.Header.SetContentTypeBytes(textPlain)
	_ = ctx.Response.Header.SetTrailer(ChecksumTrailer) // only a forbidden name is refused
	ctx.Response.Header.Set(ChecksumTrailer, hex.EncodeToString(sum[:]))
	ctx.Response.SetBodyStream(bytes.NewReader(echoBody), -1)
}

// serveStream sends chunks lines, one every so often.
func (s *Server) serveStream(ctx *fasthttp.RequestCtx) {
	chunks, every := 10, 100*time.Millisecond
	args := ctx.QueryArgs()
	if v := args.Peek("chunks"); v != nil {
		n, ok := number(v)
		if !ok || n > 1_000_000 {
			ctx.Error("chunks must be a number up to 1000000\n", fasthttp.StatusBadRequest)
			return
		}
		chunks = n
	}
	if v := args.Peek("every"); v != nil {
		d, err := time.ParseDuration(string(v))
		if err != nil || d < 0 || d > time.Minute {
			ctx.Error("every must be a duration up to 1m, such as 100ms\n", fasthttp.StatusBadRequest)
			return
		}
		every = d
	}
	ctx.Response.Header.SetContentTypeBytes(textPlain)
	ctx.Response.ImmediateHeaderFlush = true
	ctx.Response.SetBodyStream(&lines{count: chunks, every: every, stopping: s.stopping}, -1)
}

// lines is a body of numbered lines with a pause before each but the first. Each Read is a chunk.
type lines struct {
	sent, count int
	every       time.Duration
	stopping    <-chan struct{}
}

func (l *lines) Read(p []byte) (int, error) {
	if l.sent == l.count {
		return 0, io.EOF
	}
	if l.sent > 0 && l.every > 0 {
		select {
		case <-time.After(l.every):
		case <-l.stopping: // no pauses any more: a stop must not wait for a slow stream
		}
	}
	n := copy(p, strconv.Itoa(l.sent)+"\n")
	l.sent++
	return n, nil
}

// alphabetBlock repeats a to z; its length is a multiple of 26 so that it can be repeated itself.
var alphabetBlock = bytes.Repeat([]byte("abcdefghijklmnopqrstuvwxyz"), 2521)

// alphabet is a body of left bytes, a to z over and over, at most most of them per Read.
type alphabet struct {
	at, left, most int
}

func (a *alphabet) Read(p []byte) (int, error) {
	if a.left == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), a.left, a.most)], alphabetBlock[a.at%26:])
	a.at += n
	a.left -= n
	return n, nil
}
