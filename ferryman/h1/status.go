package h1

import "io"

// ReadStatus reads a response from r up to the end of its final head, and returns the status. Interim responses are
// skipped; an error is an *Error or r's.
func ReadStatus(r io.Reader) (int, error) {
	in := NewReader(unawaited{r})
	defer in.Release()
	var resp Response
	for resp.Reset(); ; {
		done, err := in.Response(&resp)
		switch {
		case err != nil:
			return 0, err
		case done && !resp.Interim():
			return resp.Status, nil
		case done:
			resp.Reset()
			continue
		}
		if err := in.Fill(); err != nil {
			return 0, err
		}
	}
}

// Awaited returns conn as a Reader reads it. One that cannot tell what is readable, such as a tls.Conn, is read at once.
func Awaited(r io.Reader) Source {
	if s, ok := r.(Source); ok {
		return s
	}
	return unawaited{r}
}

type unawaited struct{ io.Reader }

func (unawaited) Await() error { return nil }
