// Package labenv starts and ends the lab: ferryman in front of three echoes, as local processes or as
// containers from images that are made of the same binaries. It judges nothing; who asks it for a lab gets
// addresses, and a State that a later command can read.
//
//	bin, err := labenv.Build(ctx, root, dir, "")
//	s, err := labenv.StartNative(ctx, root, labenv.Native{Dir: dir, Binaries: bin, Ports: ports})
//	err = s.Fault(ctx, "kill", "a")
//	err = s.End(ctx)
package labenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Upstreams are the names of the three echoes.
var Upstreams = []string{"a", "b", "c"}

// Label is on every container, network and image of the lab, so that what is left over can be found.
const Label = "io.ferryman.lab"

// Root is the nearest folder upwards from the working directory that holds the workspace.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.work here or above: run this inside the repository")
		}
	}
}

// client obeys no proxy of the environment, and keeps no connection that a fault could spoil.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}

// Ask sends a request with an optional body and returns status and body. It takes five seconds at most.
func Ask(ctx context.Context, method, url, body string) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	return resp.StatusCode, string(text), err
}

// Answers is an error unless url answers GET with 200.
func Answers(ctx context.Context, url string) error {
	status, text, err := Ask(ctx, http.MethodGet, url, "")
	switch {
	case err != nil:
		return err
	case status != http.StatusOK:
		return fmt.Errorf("%s answers %d: %s", url, status, strings.TrimSpace(text[:min(len(text), 200)]))
	}
	return nil
}

// pollEvery is the pause between two looks.
const pollEvery = 50 * time.Millisecond

// Until calls ready until it returns nil. When limit (positive) has passed the error names what was
// awaited, and what ready said last.
func Until(ctx context.Context, limit time.Duration, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if final, ok := errors.AsType[finalError](err); ok {
			return fmt.Errorf("%s: %w", what, final.error)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %v: %w", what, limit, err)
		case <-tick.C:
		}
	}
}

// finalError ends polling: it will not get better.
type finalError struct{ error }
