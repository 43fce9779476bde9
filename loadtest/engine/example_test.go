package engine_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/Bunty9/ferryman/loadtest/engine"
	"github.com/Bunty9/ferryman/loadtest/result"
	"github.com/Bunty9/ferryman/loadtest/wire"
)

func ExampleRun() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()

	report, err := engine.Run(context.Background(), engine.Plan{
		Targets:     []engine.Target{{Request: wire.Request{URL: server.URL + "/"}, Expect: []byte("hello")}},
		Rate:        200,
		Connections: 4,
		Duration:    500 * time.Millisecond,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A shared machine may be late; a real run leaves the limits as they are.
	report.Judge(result.Budgets{P99: time.Minute}, result.Limits{LagP99: time.Minute, Stolen: 1})
	fmt.Println(report.Total.Requests, report.Total.Classes["ok"], report.Verdict.Outcome)
	// Output: 100 100 PASS
}
