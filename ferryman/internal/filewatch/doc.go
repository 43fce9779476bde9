// Package filewatch reads small files that belong together, such as a certificate and its key, and tells of
// each new content: however it was saved, only once it has rested, and without being held by a file system that
// hangs.
//
//	err := filewatch.Watch(ctx, filewatch.Files{Names: names, Kind: "a certificate or key", MiB: 1}, poke,
//		func(contents [][]byte, err error) { ... })
//
// It does not know what the files mean.
package filewatch
