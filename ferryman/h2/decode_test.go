package h2

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// peer encodes header blocks as a client's connection does.
type peer struct {
	buf bytes.Buffer
	enc *hpack.Encoder
}

func newPeer() *peer {
	p := &peer{}
	p.enc = hpack.NewEncoder(&p.buf)
	return p
}

func (p *peer) block(fields ...string) []byte {
	p.buf.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = p.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(p.buf.Bytes())
}

// gather hands a block over in pieces of n bytes.
func gather(d *Decoder, block []byte, n int) (whole []byte, err error) {
	for len(block) > n {
		if whole, err = d.Gather(block[:n], false); whole != nil || err != nil {
			return whole, err
		}
		block = block[n:]
	}
	return d.Gather(block, true)
}

func TestDecoder_KeepsTheTableInStepWhateverIsTooLarge(t *testing.T) {
	const entry = "x-entry"
	for name, fields := range map[string][]string{
		"a field":        {"x", strings.Repeat("v", 74_000)},
		"cookies":        strings.Split(strings.Repeat("cookie "+strings.Repeat("c", 4000)+" ", 30), " ")[:60],
		"many fields":    strings.Split(strings.Repeat("a b ", maxFields+1), " ")[:2*(maxFields+1)],
		"an entry":       {"x", strings.Repeat("v", 100_000), "y", strings.Repeat("v", 3000)},
		"a name":         {strings.Repeat("n", 80_000), ""},
		"nearly a block": {"x", strings.Repeat("\xff", MaxBlock-100)},
	} {
		t.Run(name, func(t *testing.T) {
			p, d, got := newPeer(), NewDecoder(), Fields{}
			require.NoError(t, d.Decode(p.block(entry, "1"), &got))
			block, err := gather(d, p.block(append(fields, "z-entry", "2")...), 16<<10)
			require.NoError(t, err)
			require.NoError(t, d.Decode(block, &got))
			require.True(t, got.TooLarge)
			require.Empty(t, got.List)
			require.NoError(t, d.Decode(p.block("z-entry", "2", entry, "1"), &got))
			require.False(t, got.TooLarge)
			require.Equal(t, []hpack.HeaderField{{Name: "z-entry", Value: "2"}, {Name: entry, Value: "1"}}, got.List)
		})
	}
}

func TestDecoder_TakesTheLargestHead(t *testing.T) {
	p, d, got := newPeer(), NewDecoder(), Fields{}
	block, err := gather(d, p.block("x", strings.Repeat("v", MaxList-33)), 16<<10)
	require.NoError(t, err)
	require.NoError(t, d.Decode(block, &got))
	require.False(t, got.TooLarge)
	require.Equal(t, MaxList-32+4, got.Size)
	require.NoError(t, d.Decode(p.block(strings.Split(strings.Repeat("a b ", maxFields), " ")[:2*maxFields]...), &got))
	require.False(t, got.TooLarge)
	require.Len(t, got.List, maxFields)
}

func TestDecoder_EndsWhatHasNoEnd(t *testing.T) {
	calm := http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	_, err := gather(NewDecoder(), make([]byte, MaxBlock+1), 16<<10)
	require.Equal(t, calm, err)
	_, err = gather(NewDecoder(), make([]byte, maxFragments+1), 1)
	require.Equal(t, calm, err)
	d := NewDecoder()
	for range maxFragments {
		block, err := d.Gather(nil, false)
		require.NoError(t, err)
		require.Nil(t, block)
		require.True(t, d.Gathering())
	}
	_, err = d.Gather(nil, true)
	require.Equal(t, calm, err)
}

func TestDecoder_MalformedBlocksEndTheConnection(t *testing.T) {
	for name, block := range map[string]string{
		"index 0":            "\x80",
		"beyond the table":   "\xff\x00",
		"cut short":          "\x00\x05abc",
		"a table too large":  "\x3f\xe1\xff\xff\x07",
		"an update too late": "\x40\x01a\x01b\x20",
		"bad Huffman code":   "\x00\x84\xff\xff\xff\xff\x00",
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, http2.ConnectionError(http2.ErrCodeCompression), NewDecoder().Decode([]byte(block), &Fields{}))
		})
	}
}

// A byte may stand for an entry of four kilobytes, or for a field of no size.
func TestDecoder_MemoryIsInProportionToBytes(t *testing.T) {
	for name, value := range map[string]string{"large": strings.Repeat("b", 4000), "small": ""} {
		t.Run(name, func(t *testing.T) {
			p, d := newPeer(), NewDecoder()
			require.NoError(t, d.Decode(p.block("x", value), &Fields{}))
			block := bytes.Repeat([]byte{0xbe}, 16<<10) // the newest entry
			held := make([]Fields, 50)
			before := allocated()
			for i := range held {
				require.NoError(t, d.Decode(block, &held[i]))
				require.True(t, held[i].TooLarge)
			}
			perBlock := (allocated() - before) / int64(len(held))
			require.Less(t, perBlock, int64(4*len(block)), "bytes for a block of %d", len(block))
			runtime.KeepAlive(held)
		})
	}
}

func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// Whatever comes in whatever pieces: no panic, and lists within the limits.
func FuzzDecoder(f *testing.F) {
	p := newPeer()
	f.Add(p.block(":method", "GET", ":path", "/", "x", "1"), 3)
	f.Add(p.block(":method", "GET", "cookie", strings.Repeat("c", 4000)), 100)
	f.Add([]byte("\x82\xbe\xbe\x3f\x00"), 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		d, n := NewDecoder(), min(max(1, n), MaxBlock)
		block, err := gather(d, b, n)
		if err != nil {
			require.Greater(t, len(b), min(MaxBlock, maxFragments*n), "refused without need")
			return
		}
		require.Equal(t, b, block)
		var got Fields
		if err := d.Decode(block, &got); err != nil {
			return
		}
		size := 0
		for _, f := range got.List {
			size += int(f.Size())
		}
		require.LessOrEqual(t, size, MaxList, fmt.Sprint(len(got.List)))
		require.LessOrEqual(t, len(got.List), maxFields)
	})
}
