package h1_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// curlHead is the smallest head that one meets in practice.
const curlHead = "GET /api/v1/items?id=42 HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n"

// browserHead has the 15 fields of a browser's navigation, cookies included.
const browserHead = "GET /shop/catalogue/garden-tools?page=2&sort=price_asc HTTP/1.1\r\n" +
	"Host: shop.example.com\r\n" +
	"Connection: keep-alive\r\n" +
	"Cache-Control: max-age=0\r\n" +
	"sec-ch-ua: \"Chromium\";v=\"124\", \"Not-A.Brand\";v=\"99\"\r\n" +
	"sec-ch-ua-mobile: ?0\r\n" +
	"sec-ch-ua-platform: \"Linux\"\r\n" +
	"Upgrade-Insecure-Requests: 1\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36\r\n" +
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n" +
	"Sec-Fetch-Site: same-origin\r\n" +
	"Sec-Fetch-Mode: navigate\r\n" +
	"Referer: https://shop.example.com/shop/catalogue?page=1\r\n" +
	"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
	"Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n" +
	"Cookie: session=8f14e45fceea167a5a36dedd4bea2543; theme=dark; consent=1; basket=c9f0f895fb98ab9159f51fd0297e236d\r\n\r\n"

const responseHead = "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Mon, 05 Jan 2026 10:00:00 GMT\r\n" +
	"Content-Type: application/json\r\nContent-Length: 512\r\nConnection: keep-alive\r\n\r\n"

func BenchmarkRequest(b *testing.B) {
	for _, c := range []struct{ name, head string }{{"curl", curlHead}, {"browser", browserHead}} {
		b.Run(c.name, func(b *testing.B) {
			var r h1.Request
			head := []byte(c.head)
			b.SetBytes(int64(len(head)))
			b.ReportAllocs()
			for b.Loop() {
				r.Reset()
				if n, err := r.Parse(head); n != len(head) || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

func BenchmarkResponse(b *testing.B) {
	var r h1.Response
	head := []byte(responseHead)
	b.SetBytes(int64(len(head)))
	b.ReportAllocs()
	for b.Loop() {
		r.Reset()
		if n, err := r.Parse(head); n != len(head) || err != nil {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkAppendKept(b *testing.B) {
	var r h1.Request
	r.Reset()
	if _, err := r.Parse([]byte(browserHead)); err != nil {
		b.Fatal(err)
	}
	drop := [h1.NotInTrailer + 1]bool{h1.Host: true, h1.Connection: true}
	dst := make([]byte, 0, 2*len(browserHead))
	b.ReportAllocs()
	for b.Loop() {
		dst = r.AppendKept(dst[:0], &drop)
	}
}

// BenchmarkChunked decodes a body of 1 MiB from memory, in reads of 32 KiB.
func BenchmarkChunked(b *testing.B) {
	for _, size := range []int{1, 16, 1024, 32 << 10} {
		b.Run(fmt.Sprintf("chunks of %d", size), func(b *testing.B) {
			const payload = 1 << 20
			chunk := fmt.Sprintf("%x\r\n%s\r\n", size, strings.Repeat("x", size))
			wire := []byte(strings.Repeat(chunk, payload/size) + h1.LastChunk)
			src := &memory{Reader: bytes.NewReader(wire)}
			in := h1.NewReader(src)
			var body h1.Body
			p := make([]byte, 32<<10)
			b.SetBytes(payload)
			b.ReportAllocs()
			for b.Loop() {
				src.Reset(wire)
				body.Reset(in, h1.Chunked, 0)
				for {
					if _, err := body.Read(p); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// memory is a Source that never waits.
type memory struct{ *bytes.Reader }

func (memory) Await() error { return nil }

// BenchmarkHostileConnection is the most work that a head of 64 KiB can make: every Connection
// member is compared with every field name to its last byte.
func BenchmarkHostileConnection(b *testing.B) {
	const long = 220
	var head strings.Builder
	head.WriteString("GET / HTTP/1.1\r\nHost: a\r\n")
	for i := range h1.MaxOptions {
		fmt.Fprintf(&head, "Connection: %s%02d\r\n", strings.Repeat("x", long-2), i)
	}
	for range h1.MaxFields - h1.MaxOptions - 1 {
		fmt.Fprintf(&head, "%s: 1\r\n", strings.Repeat("X", long))
	}
	head.WriteString("\r\n")
	if head.Len() > h1.MaxHead {
		b.Fatal(head.Len())
	}
	var r h1.Request
	input := []byte(head.String())
	b.SetBytes(int64(len(input)))
	for b.Loop() {
		r.Reset()
		if n, err := r.Parse(input); n != len(input) || err != nil {
			b.Fatal(n, err)
		}
	}
}
