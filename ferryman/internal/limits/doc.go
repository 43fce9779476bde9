// Package limits holds the limits that the specification fixes and no key of the configuration
// changes. They are variables only so that a test need not wait for them; a Proxy reads them once,
// when it is made.
package limits
