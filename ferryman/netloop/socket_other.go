//go:build !unix

package netloop

const canPeek = false

func quiet(int) bool               { return true }
func gone(int) (gone, broken bool) { return false, false }

// boundUnsent is there on Linux only.
func boundUnsent(int) {}
