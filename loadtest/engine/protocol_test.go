package engine

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRun_SpeaksTLSAndHTTP2(t *testing.T) {
	for _, tc := range []struct {
		name     string
		tls      bool
		protocol string
		want     string
	}{
		{"https", true, HTTP1, "HTTP/1.1"}, {"h2", true, HTTP2, "HTTP/2.0"}, {"h2c", false, HTTP2, "HTTP/2.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var wrong, bodies atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				bodies.Add(int64(len(body)))
				if r.Proto != tc.want || r.RequestURI != "/a%2Fb?q=1" || r.Header.Get("X-Test") != "1" || r.Host != "example.test" {
					wrong.Add(1)
				}
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(503)
				_, _ = io.WriteString(w, "upstream unavailable\n")
			}))
			protocols := &http.Protocols{}
			protocols.SetHTTP1(true)
			protocols.SetHTTP2(true)
			protocols.SetUnencryptedHTTP2(true)
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the refused handshakes below
			server.Config.Protocols, server.EnableHTTP2 = protocols, true
			if tc.tls {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			p := plan(server.URL + "/a%2Fb?q=1")
			p.Targets[0].Headers, p.Targets[0].Body = []string{"X-Test: 1", "Host: example.test"}, []byte("hello")
			p.Protocol, p.TLS = tc.protocol, &tls.Config{InsecureSkipVerify: true}
			if tc.protocol == HTTP2 {
				p.Streams = 3
			}
			report := run(t, p)
			require.Equal(t, "refused 100", classes(report.Total))
			require.Zero(t, wrong.Load(), "protocol, target, field and host arrive as they are")
			require.EqualValues(t, 500, bodies.Load())
			require.EqualValues(t, 4, report.Connections.Dials)

			p.TLS = nil // nobody has signed this certificate
			if tc.tls {
				_, err := Run(context.Background(), p)
				require.ErrorContains(t, err, "certificate")
			}
		})
	}
}
