package main

import (
	"fmt"
	"io"
	"os"

	"github.com/Bunty9/ferryman/loadtest/result"
)

// format is a way to write a report.
type format struct {
	name  string
	write func(*result.Report, io.Writer) error
}

var formats = []format{
	{"json", (*result.Report).WriteJSON}, {"hgrm", (*result.Report).WriteHGRM},
	{"svg", (*result.Report).WriteSVG}, {"html", (*result.Report).WriteHTML},
}

// output is a format and where it goes.
type output struct {
	format
	path string
}

type outputs []output

func (o outputs) onStandardOutput() (n int) {
	for _, x := range o {
		if x.path == "-" {
			n++
		}
	}
	return n
}

// openOutputs are outputs ready to be written. They are opened before the run, for it is annoying to
// learn at its end that a folder does not exist.
type openOutputs struct {
	all   outputs
	files []io.Writer
	close func()
}

func (o outputs) open(stdout io.Writer) (*openOutputs, error) {
	var files []*os.File
	opened := &openOutputs{all: o, close: func() {
		for _, f := range files {
			_ = f.Close() // write has reported what went wrong
		}
	}}
	for _, x := range o {
		if x.path == "-" {
			opened.files = append(opened.files, stdout)
			continue
		}
		f, err := os.Create(x.path)
		if err != nil {
			opened.close()
			return nil, fmt.Errorf("--%s: %w", x.name, err)
		}
		files = append(files, f)
		opened.files = append(opened.files, f)
	}
	return opened, nil
}

// write writes every output and the text, which makes way for an output on standard output.
func (o *openOutputs) write(r *result.Report, spectrum result.Spectrum, stdout, stderr io.Writer) error {
	for i, x := range o.all {
		if err := x.write(r, o.files[i]); err != nil {
			return fmt.Errorf("--%s %s: %w", x.name, x.path, err)
		}
	}
	if o.all.onStandardOutput() > 0 {
		stdout = stderr
	}
	return r.WriteText(stdout, spectrum)
}
