// Package redteam attacks a ferryman over loopback, as a process of its own between peers that are
// all ours: attackers, an upstream, and a bystander who asks all the while over connections of its own.
// An attack has failed if ferryman's memory stays within a bound, comes back to where it was once the
// attackers have left, the bystander hardly notices, and every answer that is looked at is right.
//
//	verdict, err := redteam.Run(ctx, redteam.Find("references"), redteam.Target{Binary: "ferryman", Engine: "loops"})
//	fmt.Println(verdict)
//
// Every attack is bounded in bytes and in time, and ends at once where ferryman takes too much memory.
// It wants Linux, for what /proc tells. It does not measure how fast ferryman is.
package redteam
