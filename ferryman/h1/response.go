package h1

// Response is a parsed response head. The zero value is ready; one value serves response after
// response without allocating.
type Response struct {
	Head
	Status int
	ToHead bool // the caller's to set: it answers a HEAD request
	reason span
}

// Reset prepares r for the next head.
func (r *Response) Reset() {
	r.Head.reset()
	*r = Response{Head: r.Head}
}

// Reason returns the reason phrase; it may be empty.
func (r *Response) Reason() []byte { return r.raw[r.reason.from:r.reason.to] }

// Interim reports a 1xx head: another one follows on the same connection.
func (r *Response) Interim() bool { return r.Status < 200 }

// Parse goes on with a head as Request.Parse does.
func (r *Response) Parse(b []byte) (int, error) {
	if !r.begun {
		line, err := r.line(b)
		if line == nil {
			if early := unfinishedStatus(b[:r.scan]); early != nil {
				return 0, early
			}
			return 0, err
		}
		if err := r.statusLine(line); err != nil {
			return 0, err
		}
		r.begun = true
	}
	done, err := r.fields(b)
	if !done || err != nil {
		return 0, err
	}
	return r.pos, r.framed()
}

// unfinishedStatus refuses what can no longer become a status line.
func unfinishedStatus(b []byte) error {
	const start = "HTTP/1."
	b = withoutCR(b[:min(len(b), len(start))])
	if string(b) != start[:len(b)] {
		return errStatusLine
	}
	return nil
}

// statusLine reads HTTP-version SP status-code [SP reason] (RFC 9112 section 4). The blank behind
// the code may be missing, for many send it so and nothing can be mistaken.
func (r *Response) statusLine(line []byte) error {
	const reasonAt = len("HTTP/1.1 200 ")
	if len(line) < reasonAt-1 || string(line[:7]) != "HTTP/1." || line[7]-'0' > 9 || line[8] != ' ' {
		return errStatusLine
	}
	if line[7] == '0' {
		r.old = true
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return errStatusLine
		}
		r.Status = r.Status*10 + int(c-'0')
	}
	if r.Status < 100 {
		return errStatusLine
	}
	if len(line) < reasonAt {
		return nil
	}
	if line[12] != ' ' || !isText(line[reasonAt:]) {
		return errStatusLine
	}
	r.reason = span{uint32(reasonAt), uint32(len(line))}
	return nil
}
