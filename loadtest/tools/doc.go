// Package tools has no code. Its module pins the tools of the lab, so that what they bring in is nobody
// else's: `go tool task` and `go tool benchstat` work from the repository's root.
package tools
