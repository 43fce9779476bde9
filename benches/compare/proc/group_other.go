//go:build !linux

package proc

import "syscall"

// groupOfItsOwn lets a process be ended with all its children.
func groupOfItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
