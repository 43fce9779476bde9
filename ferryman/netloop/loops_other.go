//go:build !linux

package netloop

import "errors"

// Loops returns an engine of epoll event loops. It exists on Linux only; elsewhere it is an
// error, and Goroutines is the engine to use.
func Loops(Options) (Engine, error) { return nil, errors.ErrUnsupported }
