//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

// images builds the lab's images and prints them as variables for compose.
func (l *lab) images(ctx context.Context, _ []string) error {
	images, err := labenv.BuildImages(ctx, l.root, l.binDir())
	if err != nil {
		return err
	}
	for _, line := range images.Env() {
		l.say("%s", line)
	}
	return nil
}

// foreignImage is the image that a variable names, or the one that the compose file has without it.
func (l *lab) foreignImage(variable string) (string, error) {
	if name := l.env(variable); name != "" {
		return name, nil
	}
	text, err := os.ReadFile(filepath.Join(l.root, "compose", "observability.yml"))
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`\$\{` + variable + `:-([^}]+)\}`).FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("compose/observability.yml has no %s", variable)
	}
	return string(m[1]), nil
}
