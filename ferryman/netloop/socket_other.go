//go:build !unix

package netloop

const canPeek = false

func quiet(int) bool { return true }
func gone(int) bool  { return false }

// boundUnsent is there on Linux only.
func boundUnsent(int) {}
