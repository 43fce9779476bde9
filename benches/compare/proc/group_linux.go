package proc

import "syscall"

// groupOfItsOwn lets a process be ended with all its children, and ends it if the harness dies.
func groupOfItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
