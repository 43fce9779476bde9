//go:build !unix

package netloop

import "syscall"

const canPeek = false

func quiet(int) bool               { return true }
func gone(int) (gone, broken bool) { return false, false }

// Without canPeek nobody asks for these.

func unread(int) int                             { return 0 }
func recv(int, []byte, int) (int, syscall.Errno) { return 0, syscall.ENOTSUP }
func send(int, []byte) (int, syscall.Errno)      { return 0, syscall.ENOTSUP }

// boundUnsent is there on Linux only.
func boundUnsent(int) {}
