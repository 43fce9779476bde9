// Package health asks an upstream at intervals whether it is well. What follows from the answers is not its
// business: it reports each result to a function.
//
//	c := health.New("10.0.0.7:80", "ferryman/1.0", readStatus, func(err error) { ... })
//	c.Start(5*time.Second, 2*time.Second)
//	defer c.Stop()
//
// health.go is all of it, from Start to one check.
package health
