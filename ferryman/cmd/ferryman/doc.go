// Command ferryman is a layer-7 reverse proxy: run, check, healthcheck, version and demo. It
// wires the ferryman package to flags, environment, files and signals, and does nothing else.
//
//	ferryman --config config.toml
package main
