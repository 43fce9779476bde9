package config

import (
	"context"

	"github.com/Bunty9/ferryman/ferryman/internal/filewatch"
)

// Watch calls on with each new content of the file at path, valid or not, until ctx ends, and
// returns ctx's error. It does not report what the file holds at the start, nor a touch that
// changes nothing. A value on poke (which may be nil) has the file reported at once and in any
// case. Calls of on do not overlap.
//
// A change is reported once it has rested for a moment. While the process lacks descriptors or memory to
// read the file, nothing is; a file system that hangs does not keep Watch from its end.
func Watch(ctx context.Context, path string, poke <-chan struct{}, on func(Config, error)) error {
	f := filewatch.Files{Names: []string{path}, Kind: kind, MiB: maxMiB, Valid: func(contents [][]byte) bool {
		_, err := Parse(path, contents[0])
		return err == nil
	}}
	return filewatch.Watch(ctx, f, poke, func(contents [][]byte, err error) {
		if err != nil {
			on(Config{}, unreadable(err))
			return
		}
		on(Parse(path, contents[0]))
	})
}
