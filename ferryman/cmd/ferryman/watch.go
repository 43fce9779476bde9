package main

import (
	"context"
	"reflect"

	"github.com/Bunty9/ferryman/ferryman/config"
)

// watchConfig reloads the proxy when the file changes. The poke at the start makes up for a
// change between its loading and its watching.
func (s *service) watchConfig(ctx context.Context, file string, active config.Config) {
	poke := s.poke()
	poke <- struct{}{}
	first := true
	apply := func(c config.Config, err error) {
		same := first && err == nil && reflect.DeepEqual(c, active)
		first = false
		if same {
			return
		}
		if err != nil {
			s.proxy.ReloadFailed(err)
			return
		}
		_ = s.proxy.Reload(c) // logged and counted there
	}
	s.beside.Go(func() { _ = config.Watch(ctx, file, poke, apply) })
}

func (s *service) watchCertificate(ctx context.Context) {
	if s.cert == nil {
		return
	}
	poke := s.poke()
	s.beside.Go(func() {
		s.cert.Watch(ctx, poke, func(err error) {
			if err != nil {
				s.log.Error("certificate rejected, the old one stays in use", "error", err)
				return
			}
			s.log.Info("certificate reloaded")
		})
	})
}

func (s *service) poke() chan struct{} {
	poke := make(chan struct{}, 1)
	s.pokes = append(s.pokes, poke)
	return poke
}
