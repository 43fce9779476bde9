package ferryman

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clientOverH2 is a client with one connection.
func clientOverH2(secure bool) *http.Client {
	var p http.Protocols
	p.SetHTTP2(secure)
	p.SetUnencryptedHTTP2(!secure)
	return &http.Client{Timeout: patience, Transport: &http.Transport{
		Protocols: &p, MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}

// askH2 sends a request with a body of its own and wants its own answer.
func askH2(c *http.Client, base string, who, i int) error {
	path := fmt.Sprintf("/%d/%d", who, i)
	body := strings.Repeat(path, 500*(i%4))
	r, err := c.Post(base+path, "", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if want := path + " " + body; err != nil || string(got) != want {
		return fmt.Errorf("%d: %.80q instead of %.80q: %w", r.StatusCode, got, want, err)
	}
	return nil
}

// HTTP/2 connections move between event loops, too, with streams that are held back meanwhile and, where
// others last, without. Then a drain comes while they move.
func TestMove_StreamsAreServedWhereverTheirConnectionGoes(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%t", secure), func(t *testing.T) {
			serve, scheme := startProxy, "http://"
			if secure {
				serve, scheme = startTLSProxy, "https://"
			}
			p, addr := serve(t, "", testConfig(map[string]string{"/": startUpstream(t, mirroring)}))
			loops, ok := p.engine.(interface{ Work(int) })
			if !ok {
				return // one executor
			}
			stop := make(chan struct{})
			var moving, talking sync.WaitGroup
			moving.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					case <-time.After(500 * time.Microsecond):
						loops.Work(n%2 + 1)
					}
				}
			})
			for i := range 8 {
				c := clientOverH2(secure)
				for j := range i%4 + 1 { // streams at a time
					talking.Go(func() {
						for k := range 60 {
							if err := askH2(c, scheme+addr, 10*i+j, k); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
			}
			talking.Wait()

			var asked atomic.Int64
			for i := range 8 {
				c := clientOverH2(secure)
				for j := range i%4 + 1 {
					talking.Go(func() {
						for k := 0; ; k++ {
							err := askH2(c, scheme+addr, 10*i+j, k)
							if err == nil {
								asked.Add(1)
								continue
							}
							// After the goodbye there is nobody to connect to.
							if !errors.Is(err, syscall.ECONNREFUSED) {
								t.Error(err)
							}
							return
						}
					})
				}
			}
			require.Eventually(t, func() bool { return asked.Load() > 500 }, patience, time.Millisecond)
			require.NoError(t, <-shutdown(p, patience))
			talking.Wait()
			close(stop)
			moving.Wait()
			a, i := p.clients.count()
			require.Zero(t, a+i)
		})
	}
}
