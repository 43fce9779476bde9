// Package clients puts ferryman between programs that people use: curl, nghttp, h2load, Python's http.client
// and Chromium on one side, nginx, Python's http.server, gunicorn and uvicorn on the other. It is tests only:
//
//	go test ./loadtest/clients -tags clients
//
// The programs are Debian's packages. What is missing fails with the line that installs it, for a suite that
// did not run has shown nothing. All of it is on loopback, and each process is ended with its group.
//
// A page of Chromium's does its work in its own JavaScript and posts what came of it to /report, which is a
// route to the test. It obeys no other control.
package clients
