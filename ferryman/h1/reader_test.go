package h1_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

func TestReader_HoldsNoBufferWhileIdle(t *testing.T) {
	src := scripted([]string{curlHead, curlHead})
	in := h1.NewReader(src)
	require.Zero(t, in.BufferSize(), "new")
	src.onAwait = func() { require.Zero(t, in.BufferSize(), "while waiting") }
	for range 2 {
		readHead(t, in)
		require.Equal(t, h1.SmallBuffer, in.BufferSize(), "the head still lies in it")
		in.Trim()
		require.Zero(t, in.BufferSize())
	}
	require.ErrorIs(t, in.Fill(), io.EOF)
	require.Zero(t, in.BufferSize(), "nothing came, so nothing is held")
	require.Equal(t, 3, src.waits)
}

func TestReader_SkipsEmptyLinesHoweverTheyAreCut(t *testing.T) { // 2, 306
	for _, n := range []int{0, 1, 2, 1000} {
		for i, cut := range pieces(strings.Repeat("\r\n", n) + curlHead) {
			in := h1.NewReader(scripted(cut))
			require.Equal(t, n, skipEmptyLines(t, in), "cut %d", i)
			require.Equal(t, "GET", string(readHead(t, in).Method()), "cut %d", i)
		}
	}
	for _, rest := range []string{"\n", "\nG", "\r", "\rG", "\r\r\n", "G\r\n", " \r\n", "\r\n\r\n", "\r\n\r"} {
		in := h1.NewReader(scripted([]string{"\r\n\r\n" + rest}))
		require.NoError(t, in.Fill())
		n, half := in.SkipEmptyLines(2)
		require.Equal(t, 2, n, "%q", rest)
		require.Equal(t, rest == "\r", half, "%q", rest)
		require.Equal(t, rest, string(in.Peek()))
	}
}

func TestReader_WaitsOnlyWhereNothingIsThere(t *testing.T) {
	src := scripted([]string{curlHead[:10], curlHead[10:20], curlHead[20:]})
	readHead(t, h1.NewReader(src))
	require.Equal(t, 1, src.waits, "inside a head a Read waits just as well")
}

func TestReader_AwaitFails(t *testing.T) {
	src := &failing{errors.New("gone")}
	require.EqualError(t, h1.NewReader(src).Fill(), "gone")
}

type failing struct{ err error }

func (s *failing) Await() error             { return s.err }
func (s *failing) Read([]byte) (int, error) { panic("read after a failed wait") }

func TestReader_ReadWithoutProgress(t *testing.T) {
	require.ErrorIs(t, h1.NewReader(stuck{}).Fill(), io.ErrNoProgress)
}

type stuck struct{}

func (stuck) Await() error             { return nil }
func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestReader_GrowsWithWhatItHolds(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", h1.LargeBuffer/16+1)
	src := scripted([]string{text})
	in := h1.NewReader(src)
	for in.Buffered() < h1.LargeBuffer {
		require.NoError(t, in.Fill())
		require.Equal(t, text[:in.Buffered()], string(in.Peek()))
		if in.Buffered() <= h1.SmallBuffer {
			require.Equal(t, h1.SmallBuffer, in.BufferSize())
		} else if in.Buffered() <= h1.MiddleBuffer {
			require.Equal(t, h1.MiddleBuffer, in.BufferSize())
		} else {
			require.Equal(t, h1.LargeBuffer, in.BufferSize())
		}
	}
	require.ErrorIs(t, in.Fill(), io.ErrNoProgress, "it never grows further")
	require.Equal(t, text[:h1.LargeBuffer], string(in.Peek()))
	in.Release()
	require.Zero(t, in.Buffered())
	require.Zero(t, in.BufferSize())
}

func TestReader_MovesToTheFrontBeforeItGrows(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", h1.SmallBuffer/16)
	in := h1.NewReader(scripted([]string{text, text, "end"}))
	require.NoError(t, in.Fill())
	in.Discard(1000)
	for range 3 {
		require.NoError(t, in.Fill())
	}
	require.Equal(t, (text + text + "end")[1000:1000+in.Buffered()], string(in.Peek()))
	require.Equal(t, h1.MiddleBuffer, in.BufferSize())
	require.Equal(t, 2*h1.SmallBuffer-1000+len("end"), in.Buffered())
}

func TestReader_HeadThatCrossesBuffers(t *testing.T) {
	long := "X-Long: " + strings.Repeat("v", 3000) + "\r\n"
	head := with(long, long, long)
	for _, before := range []int{0, 1, 100, 1000} {
		skip := strings.Repeat("s", before)
		src := scripted([]string{skip + head[:500], head[500:4000], head[4000:4001], head[4001:] + "rest"})
		in := h1.NewReader(src)
		for in.Buffered() < before {
			require.NoError(t, in.Fill())
		}
		in.Discard(before)
		r := readHead(t, in)
		require.Len(t, r.Fields, 4)
		require.Equal(t, long, string(r.Name(&r.Fields[3]))+": "+string(r.ValueOf(&r.Fields[3]))+"\r\n")
		require.Equal(t, "rest", string(in.Peek())+string(src.rest()))
	}
}

func TestReader_ResetForgets(t *testing.T) {
	in := h1.NewReader(scripted([]string{"old bytes"}))
	require.NoError(t, in.Fill())
	in.Reset(scripted([]string{"new"}))
	require.Zero(t, in.Buffered())
	require.Zero(t, in.BufferSize())
	require.NoError(t, in.Fill())
	require.Equal(t, "new", string(in.Peek()))
}

func TestReader_PeekAfterUnread(t *testing.T) {
	src := scripted([]string{"5\r\nhello\r\n", "0\r\n\r\n" + curlHead + "more"})
	in := h1.NewReader(src)
	var body h1.Body
	body.Reset(in, h1.Chunked, 0)
	require.Zero(t, in.BufferSize(), "a body is read past the buffer")
	_, err := io.ReadAll(&body)
	require.NoError(t, err)
	require.Equal(t, curlHead+"more", string(in.Peek()))
	require.Equal(t, "/api/v1/items", string(readHead(t, in).Path()))
	require.Equal(t, "more", string(in.Peek()))
}

// Buffers are shared by all readers: what one gave back must never be seen through another.
func TestReader_BuffersAreNotSharedWhileHeld(t *testing.T) {
	var readers []*h1.Reader
	for i := range 50 {
		in := h1.NewReader(scripted([]string{strings.Repeat(string(rune('a'+i%26)), 100+i)}))
		require.NoError(t, in.Fill())
		readers = append(readers, in)
		if i%3 == 0 {
			readers[i/2].Release()
		}
	}
	for i, in := range readers {
		if in.BufferSize() > 0 {
			require.Equal(t, strings.Repeat(string(rune('a'+i%26)), 100+i), string(in.Peek()))
		}
	}
}

func TestReader_FollowKeepsWhatIsBuffered(t *testing.T) {
	in := h1.NewReader(scripted([]string{"old"}))
	require.NoError(t, in.Fill())
	in.Follow(scripted([]string{"new"}))
	require.Equal(t, "old", string(in.Peek()))
	require.NoError(t, in.Fill())
	require.Equal(t, "oldnew", string(in.Peek()))
}
