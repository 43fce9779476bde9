// Package tunnel joins two connections once their protocol is none of the proxy's business any more, as after a 101 or
// a CONNECT: bytes flow both ways until both sides have ended theirs, one has failed, or nothing has moved for a while.
//
// It makes no connection and closes none, and it looks at no byte.
//
//	tunnel.Join(executor, 5*time.Minute, client, nil, upstream)
//
// tunnel.go is all of it: Join, then one direction.
package tunnel
