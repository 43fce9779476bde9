package wire

import (
	"bytes"
	"errors"
)

// ErrMalformed is what every error of a Scanner wraps.
var ErrMalformed = errors.New("malformed answer")

// malformed is an ErrMalformed with a reason, made once: an answer allocates nothing.
type malformed string

func (m malformed) Error() string { return "malformed answer: " + string(m) }
func (m malformed) Unwrap() error { return ErrMalformed }

// Limits of what is taken: larger is malformed.
const (
	maxHead    = 64 << 10
	maxLine    = 8 << 10 // of a chunk's size line
	maxTrailer = 64 << 10
)

// SnippetSize is how much of a body's beginning a Scanner keeps.
const SnippetSize = 64

// Expectation says what is right. The zero value takes any body.
type Expectation struct {
	// NoBody is for answers to HEAD.
	NoBody bool
	// Exact demands that the body is Body, byte for byte.
	Exact bool
	Body  []byte
}

type state uint8

const (
	stateHead state = iota
	stateFixed
	stateChunkSize
	stateChunkData
	stateChunkEnd
	stateTrailer
	stateUntilEOF
	stateDone
)

// Scanner reads one answer at a time. Reset starts the next one; its buffer for heads that come in
// pieces is kept.
type Scanner struct {
	// Of the answer so far; complete once Feed or EOF reported done.
	Status     int   // of the final head, 0 before it
	Close      bool  // the connection ends after this answer
	RetryAfter bool  // a Retry-After field was there
	Length     int64 // body bytes

	expect   Expectation
	state    state
	differs  bool
	begun    bool
	left     int64 // of the fixed body or the chunk
	carry    []byte
	trailer  int
	snippet  [SnippetSize]byte
	snippetN int
}

// Reset forgets the answer and waits for the next one.
func (s *Scanner) Reset(e Expectation) {
	*s = Scanner{expect: e, carry: s.carry[:0]}
}

// Begun reports whether any byte of the answer was fed.
func (s *Scanner) Begun() bool { return s.begun }

// Right reports whether the body is the expected one. Before the end it is not.
func (s *Scanner) Right() bool {
	if s.state != stateDone {
		return false
	}
	return !s.expect.Exact || (!s.differs && s.Length == int64(len(s.expect.Body)))
}

// Snippet is the beginning of the body; it is valid until Reset.
func (s *Scanner) Snippet() []byte { return s.snippet[:s.snippetN] }

// Feed scans the next bytes. It takes n of them; when done, the rest is not this answer's. After an
// error the answer is lost and so is the connection.
func (s *Scanner) Feed(p []byte) (n int, done bool, err error) {
	if len(p) > 0 {
		s.begun = true
	}
	for n < len(p) && s.state != stateDone {
		m, err := s.step(p[n:])
		n += m
		if err != nil {
			return n, false, err
		}
	}
	return n, s.state == stateDone, nil
}

// EOF tells the scanner that the peer has closed, and returns whether that completes the answer.
func (s *Scanner) EOF() (done bool) {
	if s.state == stateUntilEOF {
		s.state = stateDone
	}
	return s.state == stateDone
}

// step takes bytes of one state. It takes at least one byte or changes the state.
func (s *Scanner) step(p []byte) (int, error) {
	switch s.state {
	case stateHead:
		return s.head(p)
	case stateFixed, stateChunkData:
		n := int(min(int64(len(p)), s.left))
		s.body(p[:n])
		s.left -= int64(n)
		switch {
		case s.left > 0:
		case s.state == stateFixed:
			s.state = stateDone
		default:
			s.state = stateChunkEnd
		}
		return n, nil
	case stateUntilEOF:
		s.body(p)
		return len(p), nil
	}
	return s.line(p)
}

// body compares and counts what is passing by.
func (s *Scanner) body(p []byte) {
	if s.snippetN < SnippetSize {
		s.snippetN += copy(s.snippet[s.snippetN:], p)
	}
	if s.expect.Exact && !s.differs {
		want := s.expect.Body
		at := s.Length
		s.differs = at+int64(len(p)) > int64(len(want)) || !bytes.Equal(want[at:at+int64(len(p))], p)
	}
	s.Length += int64(len(p))
}

// line gathers one short line of chunked coding and acts on it.
func (s *Scanner) line(p []byte) (int, error) {
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		s.carry = append(s.carry, p...)
		if len(s.carry) > maxLine {
			return len(p), malformed("a line of chunked coding without an end")
		}
		return len(p), nil
	}
	line := p[:end+1]
	if len(s.carry) > 0 {
		s.carry = append(s.carry, line...)
		line = s.carry
	}
	s.carry = s.carry[:0]
	if len(line) < 2 || line[len(line)-2] != '\r' {
		return end + 1, malformed("bare LF in chunked coding")
	}
	return end + 1, s.chunkLine(line[:len(line)-2])
}

func (s *Scanner) chunkLine(line []byte) error {
	switch s.state {
	case stateChunkSize:
		size, err := chunkSize(line)
		if err != nil {
			return err
		}
		s.left = size
		s.state = stateChunkData
		if size == 0 {
			s.state = stateTrailer
		}
	case stateChunkEnd:
		if len(line) != 0 {
			return malformed("a chunk longer than its size")
		}
		s.state = stateChunkSize
	case stateTrailer:
		if len(line) == 0 {
			s.state = stateDone
			return nil
		}
		s.trailer += len(line)
		if s.trailer > maxTrailer {
			return malformed("trailers over 64 KiB")
		}
		if _, _, ok := field(line); !ok {
			return malformed("bad trailer line")
		}
	}
	return nil
}
