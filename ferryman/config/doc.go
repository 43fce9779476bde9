// Package config reads, checks and watches the TOML configuration of a ferryman proxy.
//
// It is strict: an unknown key, a wrong type or a bad value is an error, and all errors of a
// file are reported at once, each with its line and what would be right. It does not start or
// change anything; what to do with a new Config is its caller's business.
//
//	c, err := config.Load("config.toml")
//	if err != nil {
//		return err // one line per error
//	}
//	err = config.Watch(ctx, "config.toml", nil, func(c config.Config, err error) { ... })
//
// Read config.go for the keys and their defaults, parse.go for how a file becomes a Config, watch.go for changes.
package config
