// Package dial finds the way to an upstream: it resolves names off the executors, races the addresses that a name
// has, and tells a shortage of the process's own from a failure of the upstream.
//
// It knows nothing of HTTP, of pools or of circuits, and keeps no connection.
//
//	d := dial.New(dial.Options{})
//	defer d.Close()
//	conn, err := d.Dial(ex, dial.Parse("app.internal:8080"), 2*time.Second, nil)
//
// dial.go is the way of one dial; names.go resolves, race.go tries addresses, shortage.go knows what the host lacks.
package dial
