// Command gen writes the lab's dashboard, as JSON that Grafana's provisioning reads. It knows no Grafana and
// no Prometheus: the tests beside it hold every expression against a real one.
//
//	go run ./grafana/gen grafana/dashboards/ferryman.json
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "gen: name the file to write: go run ./grafana/gen grafana/dashboards/ferryman.json")
		os.Exit(2)
	}
	text, err := render()
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// render is the dashboard as it is committed: keys sorted, so that a diff shows what changed.
func render() ([]byte, error) {
	d, err := build()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var sorted any
	if err := json.Unmarshal(text, &sorted); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(sorted)
	return b.Bytes(), err
}
