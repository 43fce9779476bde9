//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/Bunty9/ferryman/loadtest/labenv"
)

func (l *lab) kill(ctx context.Context, args []string) error {
	return l.fault(ctx, "kill", args[0], nil, "is dead")
}

func (l *lab) pause(ctx context.Context, args []string) error {
	return l.fault(ctx, "pause", args[0], nil, "accepts connections and says nothing")
}

func (l *lab) slow(ctx context.Context, args []string) error {
	latency := l.or("LATENCY", "3s")
	return l.fault(ctx, "slow", args[0], map[string]any{"latency": latency}, "answers after "+latency)
}

func (l *lab) errors(ctx context.Context, args []string) error {
	rate, err := strconv.ParseFloat(l.or("RATE", "1"), 64)
	if err != nil {
		return fmt.Errorf("RATE is %q: it must be a number from 0 to 1", l.env("RATE"))
	}
	code, err := strconv.Atoi(l.or("STATUS", "503"))
	if err != nil {
		return fmt.Errorf("STATUS is %q: it must be a number such as 503", l.env("STATUS"))
	}
	body := map[string]any{"error_rate": rate, "error_status": code, "health": l.or("HEALTH", "follow")}
	return l.fault(ctx, "errors", args[0], body, fmt.Sprintf("answers %d to %g of all requests", code, rate))
}

func (l *lab) fault(ctx context.Context, kind, upstream string, body map[string]any, said string) error {
	s, err := labenv.Load(l.root)
	if err != nil {
		return err
	}
	var text []byte
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	if err := s.Fault(ctx, kind, upstream, string(text)); err != nil {
		return err
	}
	l.say("echo-%s %s: curl -i %s/svc-%[1]s/hello; `task heal UPSTREAM=%[1]s` undoes it", upstream, said, s.Proxy)
	return nil
}

func (l *lab) heal(ctx context.Context, args []string) error {
	s, err := labenv.Load(l.root)
	if err != nil {
		return err
	}
	if err := s.Heal(ctx, args[0]); err != nil {
		return err
	}
	if err := s.Save(l.root); err != nil {
		return err
	}
	l.say("echo-%s answers again: its circuit closes with the next health check", args[0])
	return nil
}
