//go:build !linux

package engine

import "time"

// pause sleeps for about d.
func pause(d time.Duration) { time.Sleep(d) }
