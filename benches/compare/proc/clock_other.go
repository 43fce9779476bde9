//go:build !linux

package proc

import (
	"errors"
	"time"
)

// clock is there on Linux only.
func clock(int) (time.Duration, error) { return 0, errors.ErrUnsupported }
