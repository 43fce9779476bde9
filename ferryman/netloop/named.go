package netloop

import "fmt"

// Named returns the engine with a name: "loops", "goroutines", which is g, or "" and "auto" for event loops where they
// exist and g elsewhere.
func Named(name string, o Options, g *GoroutineEngine) (Engine, error) {
	switch name {
	case "goroutines":
		return g, nil
	case "", "auto", "loops":
	default:
		return nil, fmt.Errorf("engine %q: use auto, loops or goroutines", name)
	}
	loops, err := Loops(o)
	switch {
	case err == nil:
		return loops, nil
	case name == "loops":
		return nil, fmt.Errorf("engine loops: %w: use goroutines", err)
	}
	return g, nil
}
