package h2

import (
	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

const (
	// MaxList is the largest head in the size of RFC 9113 section 6.5.2, which counts 32 bytes a field more
	// than the codec of HTTP/1.1, which decides.
	MaxList = h1.MaxHead + 32*(h1.MaxFields+8)
	// MaxBlock is how many bytes of a header block are decoded to keep the tables in step, although the head
	// that they are is too large.
	MaxBlock = 256 << 10
	// maxFields is more than the codec takes, for the crumbs of one Cookie field are many here.
	maxFields = 2*h1.MaxFields + 8
	// maxFragments bounds the frames of a block: each may be empty.
	maxFragments = 128
	tableSize    = 4096
)

// Fields is what one header block holds.
type Fields struct {
	List     []hpack.HeaderField
	Size     int  // bytes of a head of HTTP/1.1 with these fields, nearly
	TooLarge bool // the head is over a limit, and List is empty
	ToHead   bool // it is that of a HEAD request
	listed   int  // the size of RFC 9113
}

// Decoder decodes the header blocks of one connection, one after another.
type Decoder struct {
	hpack     *hpack.Decoder
	to        *Fields
	gathered  []byte // of a block that comes in several frames
	fragments int
	decoded   int
}

// NewDecoder returns a decoder with a dynamic table of the size that a peer may assume.
func NewDecoder() *Decoder {
	d := &Decoder{}
	d.hpack = hpack.NewDecoder(tableSize, d.emit)
	return d
}

// Gather takes the next fragment of a block, and returns the block once it is whole. It may be the fragment
// itself. A block without end is an http2.ConnectionError.
func (d *Decoder) Gather(fragment []byte, ended bool) ([]byte, error) {
	if ended && d.fragments == 0 {
		return fragment, nil
	}
	d.fragments++
	if d.fragments > maxFragments || len(d.gathered)+len(fragment) > MaxBlock {
		return nil, http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	d.gathered = append(d.gathered, fragment...)
	if !ended {
		return nil, nil
	}
	block := d.gathered
	d.gathered, d.fragments = nil, 0
	return block, nil
}

// Gathering reports whether the end of a block is still to come.
func (d *Decoder) Gathering() bool { return d.fragments > 0 }

// Decode decodes a block into to, whose memory is used again. It is an http2.ConnectionError if the block is
// malformed.
func (d *Decoder) Decode(block []byte, to *Fields) error {
	*to = Fields{List: to.List[:0]}
	d.to = to
	d.hpack.SetEmitEnabled(true)
	_, err := d.hpack.Write(block)
	if err == nil {
		err = d.hpack.Close()
	}
	d.to = nil
	d.decoded += len(block) + to.Size
	if err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	return nil
}

// Decoded is what the blocks since the last call came to, in bytes: those that came, and those of the fields.
func (d *Decoder) Decoded() (n int) {
	n, d.decoded = d.decoded, 0
	return n
}

// emit takes a field. Once they are too many no more are made, for a byte may stand for a large one.
func (d *Decoder) emit(f hpack.HeaderField) {
	const separators = len(": \r\n")
	to := d.to
	to.Size += len(f.Name) + len(f.Value) + separators
	to.listed += int(f.Size())
	to.ToHead = to.ToHead || f.Name == ":method" && f.Value == "HEAD"
	if to.listed > MaxList || len(to.List) == maxFields {
		to.List, to.TooLarge = nil, true
		d.hpack.SetEmitEnabled(false)
		return
	}
	to.List = append(to.List, f)
}

// Valid reports whether the fields may stand in a trailer section (RFC 9113 sections 8.1 and 8.2).
func (f *Fields) Valid() bool {
	for i := range f.List {
		if !ValidName(f.List[i].Name) || !httpguts.ValidHeaderFieldValue(f.List[i].Value) {
			return false
		}
	}
	return true
}

// ValidName reports a field name (RFC 9110 section 5.1) without capitals (RFC 9113 section 8.2).
func ValidName(name string) bool {
	for i := range len(name) {
		if c := name[i]; !httpguts.IsTokenRune(rune(c)) || c-'A' < 26 {
			return false
		}
	}
	return name != ""
}
