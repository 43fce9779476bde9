package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

const (
	// retryEvery is the time between two attempts to get an address that another process has.
	retryEvery = 100 * time.Millisecond
	// retries are made before an address counts as taken: whoever has it may have been told to end just now.
	retries = 5
)

// errDraining is an address that a ferryman has which is about to end.
var errDraining = errors.New("a ferryman that is draining has it")

// bind listens on the address of a flag. Where a ferryman that is draining has it, the one that this process
// replaces, it waits for its end if patient, and returns errDraining otherwise.
func (p *program) bind(ctx context.Context, flag string, patient bool) (net.Listener, error) {
	for attempt := 0; ; attempt++ {
		l, err := listen(ctx, flag, p.get(flag))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
		switch going := draining(ctx, p.get("metrics-bind")); {
		case going && !patient:
			return nil, errDraining
		case !going && attempt >= retries:
			return nil, err
		}
		if err := pause(ctx, retryEvery); err != nil {
			return nil, err
		}
	}
}

// takeMetrics listens on the metrics address as soon as it is free. nil: ctx has ended.
func (p *program) takeMetrics(ctx context.Context) net.Listener {
	for pause(ctx, retryEvery) == nil {
		if l, err := listen(ctx, "metrics-bind", p.get("metrics-bind")); err == nil {
			return l
		}
	}
	return nil
}

// draining asks a metrics listener whether it is that of a ferryman which is about to end.
func draining(ctx context.Context, bind string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	resp, err := ask(ctx, "http://"+reachable(bind)+"/readyz")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 100))
	return err == nil && resp.StatusCode == http.StatusServiceUnavailable && strings.TrimSpace(string(body)) == "draining"
}

// ask has a transport of its own, because the default one obeys HTTP_PROXY.
func ask(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
