package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxSize bounds a configuration file, in bytes.
const (
	maxSize  = 4 << 20
	tooLarge = "has more than 4 MiB: this is hardly a configuration"
)

// Load reads the configuration file at path. The error, if any, is of type Errors.
func Load(path string) (Config, error) {
	data, err := read(path)
	if err != nil {
		return Config{}, err
	}
	return Parse(path, data)
}

// read returns the content of a regular file of bounded size, and hangs on nothing else.
func read(path string) ([]byte, error) {
	fail := func(format string, args ...any) ([]byte, error) {
		return nil, Errors{{File: path, Msg: fmt.Sprintf(format, args...)}}
	}
	// O_NONBLOCK: opening a named pipe would wait for somebody to write to it.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("there is no such file: create it or name another one")
	case errors.Is(err, fs.ErrPermission):
		return fail("may not be read: change its permissions or the user")
	case errors.Is(err, syscall.ELOOP):
		return fail("is a loop of symbolic links: point it at a file")
	case err != nil:
		return fail("cannot be opened: %v: name a regular file", errors.Unwrap(err))
	}
	defer f.Close()
	switch info, err := f.Stat(); {
	case err != nil:
		return fail("cannot be read: %v", err)
	case info.IsDir():
		return fail("is a directory: name the file in it")
	case !info.Mode().IsRegular():
		return fail("is not a regular file: copy its content into one")
	case info.Size() > maxSize:
		return fail(tooLarge)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	switch {
	case err != nil:
		return fail("cannot be read: %v", err)
	case len(data) > maxSize: // it grew meanwhile
		return fail(tooLarge)
	}
	return data, nil
}
