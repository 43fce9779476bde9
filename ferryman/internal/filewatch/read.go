package filewatch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Error is why a file cannot be read, and what to do.
type Error struct {
	Name, Msg string
	Cause     error // of the system; may be nil
}

// Error is "name: message".
func (e *Error) Error() string { return e.Name + ": " + e.Msg }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Read returns the content of a regular file of at most so many MiB. kind is what the file is to hold, such as
// "a configuration". The error is an *Error.
func Read(name, kind string, mib int64) ([]byte, error) {
	fail := func(cause error, format string, args ...any) ([]byte, error) {
		if short(cause) {
			format, args = "cannot be read now: %v: end what takes so much, or raise the limit", []any{system(cause)}
		}
		return nil, &Error{name, fmt.Sprintf(format, args...), cause}
	}
	// O_NONBLOCK: opening a named pipe would wait for somebody to write to it.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(err, "there is no such file: create it or name another one")
	case errors.Is(err, fs.ErrPermission):
		return fail(err, "may not be read: change its permissions or the user")
	case errors.Is(err, syscall.ELOOP):
		return fail(err, "is a loop of symbolic links: point it at a file")
	case err != nil:
		return fail(err, "cannot be opened: %v: name a regular file", system(err))
	}
	defer f.Close()
	switch info, err := f.Stat(); {
	case err != nil:
		return fail(err, "cannot be read: %v", err)
	case info.IsDir():
		return fail(nil, "is a directory: name the file in it")
	case !info.Mode().IsRegular():
		return fail(nil, "is not a regular file: copy its content into one")
	case info.Size() > mib<<20:
		return fail(nil, "has more than %d MiB: this is hardly %s", mib, kind)
	}
	data, err := io.ReadAll(io.LimitReader(f, mib<<20+1))
	switch {
	case err != nil:
		return fail(err, "cannot be read: %v", err)
	case int64(len(data)) > mib<<20: // it grew meanwhile
		return fail(nil, "has more than %d MiB: this is hardly %s", mib, kind)
	}
	return data, nil
}

// short reports whether the process or the system lacks something for a while: no fault of the file's.
func short(err error) bool {
	for _, lack := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EAGAIN, syscall.EINTR} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// system is err without the file's name.
func system(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}
