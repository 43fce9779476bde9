// Package repocheck is tests about the repository itself: modules, licences, images, compose files, links
// and the shape of the code. It has no code of its own.
//
//	go test ./loadtest/repocheck
package repocheck
