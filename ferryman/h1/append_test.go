package h1_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

type kinds = [h1.NotInTrailer + 1]bool

func TestAppendKept_EverySelectionOfFields(t *testing.T) {
	lines := []string{"A: 1\r\n", "Via:2 \r\n", "B:\r\n", "TE:\t3\t\r\n", "Date: 4\r\n", "C: \xff\r\n"}
	dropped := kinds{h1.Via: true, h1.TE: true, h1.Date: true, h1.Host: true}
	for pick := range 1 << len(lines) {
		var in, want strings.Builder
		for i, l := range lines {
			if pick>>i&1 == 0 {
				continue
			}
			in.WriteString(l)
			if i%2 == 0 && i != 4 || i == 5 {
				want.WriteString(l)
			}
		}
		for _, input := range []string{with(in.String()), with(in.String()) + "behind"} {
			r := request(t, input)
			require.Equal(t, "before"+want.String(), string(r.AppendKept([]byte("before"), &dropped)), input)
			require.Equal(t, "Host: a\r\n"+in.String(), string(r.AppendKept(nil, &kinds{})), input)
		}
		r := response(t, answer(in.String()))
		require.Equal(t, want.String(), string(r.AppendKept(nil, &dropped)))
	}
}

func TestAppendKept_NamedByConnection(t *testing.T) { // 65
	r := request(t, with("Connection: close, X-Drop\r\n", "X-Drop: 1\r\n", "X-Keep: 2\r\n", "x-drop: 3\r\n"))
	got := r.AppendKept(nil, &kinds{h1.Host: true, h1.Connection: true, h1.Dropped: true})
	require.Equal(t, "X-Keep: 2\r\n", string(got))
}

func TestAppend_Lines(t *testing.T) {
	require.Equal(t, "x: y\r\n", string(h1.AppendField(nil, "x", "y")))
	require.Equal(t, "zContent-Length: 0\r\n", string(h1.AppendLength([]byte("z"), 0)))
	require.Equal(t, "Content-Length: 9223372036854775807\r\n", string(h1.AppendLength(nil, 1<<63-1)))
	require.Equal(t, "HTTP/1.1 200 OK\r\n", string(h1.AppendStatus(nil, 200, []byte("OK"))))
	require.Equal(t, "HTTP/1.1 999 \r\n", string(h1.AppendStatus(nil, 999, nil)))
}

func TestChunk_FramesInPlaceWhatTheDecoderReads(t *testing.T) {
	for _, n := range []int{1, 2, 9, 10, 15, 16, 17, 255, 256, 257, 4095, 4096, 32 << 10, 65535} {
		payload := strings.Repeat("p", n)
		b := make([]byte, h1.ChunkFront+n+h1.ChunkBack)
		copy(b[h1.ChunkFront:], payload)
		framed := string(h1.Chunk(b, n))
		require.Equal(t, read{Payload: payload}, everyRead(t, h1.Chunked, 0, framed+h1.LastChunk), "%d bytes", n)
		require.NotEqual(t, byte('0'), framed[0], "no leading zeros")
	}
}

func TestAppendTrailer_KeepsPlainFieldsOnly(t *testing.T) { // 121
	var body h1.Body
	section := "X-T: 1\r\nContent-Length: 99\r\nTransfer-Encoding: x\r\nHost: evil\r\nAuthorization: z\r\nSet-Cookie: a\r\n" +
		"Content_Length: 1\r\nConnection: X-T\r\nTrailer: x\r\nTE: x\r\nVia: x\r\nCookie: c\r\nX-U:\r\nX-Forwarded-For: 1\r\n"
	body.Reset(h1.NewReader(scripted([]string{"0\r\n" + section + "\r\n"})), h1.Chunked, 0)
	_, err := io.ReadAll(&body)
	require.NoError(t, err)
	require.Equal(t, "0\r\nX-T: 1\r\nX-U:\r\n\r\n", string(h1.AppendTrailer(nil, body.Trailer())))
	require.Equal(t, h1.LastChunk, string(h1.AppendTrailer(nil, nil)))
}
