package ferryman_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/Bunty9/ferryman/ferryman"
	"github.com/Bunty9/ferryman/ferryman/config"
)

// A program embeds a proxy, with an admin server, a logger and a registry of its own.
func Example() {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for %s", r.RequestURI, r.Header.Get("X-Forwarded-For"))
	}))
	defer backend.Close()

	c := config.Default()
	c.Routes = []config.Route{{Prefix: "/api", Upstream: backend.Listener.Addr().String()}}
	registry := prometheus.NewRegistry()
	p, err := ferryman.New(c, ferryman.Options{
		Logger:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Registerer: registry,
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	admin := httptest.NewServer(p.MetricsHandler())
	defer admin.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go p.Serve(l)

	for _, url := range []string{"http://" + l.Addr().String() + "/api/x?y=1", admin.URL + "/readyz"} {
		resp, err := http.Get(url)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Printf("%d %s\n", resp.StatusCode, body)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	fmt.Println("drained:", p.Shutdown(ctx) == nil)
	// Output:
	// 200 /api/x?y=1 for 127.0.0.1
	// 200 ready
	//
	// drained: true
}

// A new configuration is one atomic swap. What is wrong with it changes nothing.
func ExampleProxy_Reload() {
	c := config.Default()
	c.Routes = []config.Route{{Prefix: "/", Upstream: "127.0.0.1:1"}}
	p, err := ferryman.New(c, ferryman.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()

	c.FailureThreshold = 5
	fmt.Println(p.Reload(c))
	c.FailureThreshold = 0
	fmt.Println(p.Reload(c) != nil)
	// Output:
	// <nil>
	// true
}
