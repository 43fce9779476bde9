// Package pool keeps idle connections to one place, and queues those that find none: a connection that comes
// free or was dialled goes to whoever has waited longest. Each executor has a stack of its own, newest on top, so that
// the surplus grows old at the bottom, and so many dials at a time that a backlog of 128 is not flooded.
//
// It does not know whether a connection is fit for use: that is for its user to see, when it takes one and in Filter.
//
//	p := pool.New(engine.Executors(), dial, spare)
//	conn, ok := p.Pop(executor)
//	if !ok {
//		var w pool.Waiter[*Conn]
//		w.Reset(p, executor, false)
//		conn, err = w.Wait(timeout)
//	}
//	...
//	p.Push(executor, conn)
//
// Read pool.go first, then waiter.go for a wait and dials.go for the dials that serve the waiters.
package pool
