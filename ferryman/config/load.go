package config

import (
	"errors"

	"github.com/Bunty9/ferryman/ferryman/internal/filewatch"
)

// kind and maxMiB are what a configuration file is called and may have.
const kind, maxMiB = "a configuration", 4

// Load reads the configuration file at path. The error, if any, is of type Errors.
func Load(path string) (Config, error) {
	data, err := filewatch.Read(path, kind, maxMiB)
	if err != nil {
		return Config{}, unreadable(err)
	}
	return Parse(path, data)
}

// unreadable is the Errors of a file that cannot be read.
func unreadable(err error) error {
	if e := (*filewatch.Error)(nil); errors.As(err, &e) {
		return Errors{{File: e.Name, Msg: e.Msg}}
	}
	return Errors{{Msg: err.Error()}}
}
