//go:build !linux

package engine

// haveLoops reports whether this system has the executor of that name.
const haveLoops = false

func (r *Runner) newExecutor() (executor, error) { return newWorkers(r), nil }
