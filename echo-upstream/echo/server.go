package echo

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// InstanceField is on every answer of the data port and holds the instance's name.
const InstanceField = "X-Echo-Instance"

var instanceField = []byte(InstanceField)

// Options configure a Server.
type Options struct {
	// Instance is the name that answers carry. It must not be empty, nor hold control characters.
	Instance string
	// Log gets what goes wrong on connections. Nil: nobody does.
	Log *log.Logger
}

// Server answers on a data and an admin listener. New is the only way to make one.
type Server struct {
	instance      string
	instanceBytes []byte
	data          *fasthttp.Server
	admin         *http.Server

	injected atomic.Pointer[injection] // written by the admin port, read once per request; nil: no fault
	stopping chan struct{}             // closed by Shutdown: ends all waits
	fronts   fronts

	started       time.Time
	sequence      atomic.Uint64
	answers       [endpoints][600]atomic.Uint64 // by status
	faults        [kinds]atomic.Uint64
	faultChanges  atomic.Uint64
	held          atomic.Int64
	opened        atomic.Uint64
	openNow       atomic.Int64
	stoppedBefore atomic.Bool
}

// quiet throws away what fasthttp logs about connections that faults broke.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// New makes a server that serves nothing yet.
func New(o Options) *Server {
	s := &Server{instance: o.Instance, instanceBytes: []byte(o.Instance), stopping: make(chan struct{}), started: time.Now()}
	var logger fasthttp.Logger = quiet{}
	if o.Log != nil {
		logger = o.Log
	}
	s.data = &fasthttp.Server{
		Handler:                       s.handle,
		ErrorHandler:                  s.refuse,
		Logger:                        logger,
		Name:                          "echo-upstream",
		CloseOnShutdown:               true,
		DisableHeaderNamesNormalizing: true, // fields are shown as they arrived
		DisablePreParseMultipartForm:  true,
		StreamRequestBody:             true,
		MaxRequestBodySize:            64 << 10, // what is read ahead of the handler, no limit
		ReadBufferSize:                64 << 10, // the largest head that a proxy may forward
		LazyRequestTime:               true,
	}
	s.admin = &http.Server{Handler: s.adminHandler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(discard{}, "", 0)}
	return s
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// ServeData answers on l until Shutdown, and then returns nil. It closes l.
func (s *Server) ServeData(l net.Listener) error {
	front, err := s.newFront(l)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return s.data.Serve(front)
}

// ServeAdmin answers admin requests on l until Shutdown, and then returns nil. It closes l.
func (s *Server) ServeAdmin(l net.Listener) error {
	if err := s.admin.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting, releases what a fault holds, answers what is in flight and returns nil,
// or ctx's error if that takes longer than ctx allows. It may be called more than once.
func (s *Server) Shutdown(ctx context.Context) error {
	if !s.stoppedBefore.Swap(true) {
		close(s.stopping)
	}
	s.stopFronts()
	return errors.Join(s.data.ShutdownWithContext(ctx), s.admin.Shutdown(ctx))
}

// handle serves one request of the data port. Without a fault, /echo costs a comparison, a header
// and a counter.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	e, n := choose(ctx.Request.Header.RequestURI())
	in := s.injected.Load()
	if in != nil {
		if s.underFault(ctx, e, n, in) {
			return
		}
	} else {
		s.answer(ctx, e, n)
	}
	s.finish(ctx, e)
}

// underFault answers as the fault in says and reports whether the connection is gone.
func (s *Server) underFault(ctx *fasthttp.RequestCtx, e endpoint, n int, in *injection) (gone bool) {
	c := connOf(ctx)
	c.slow = nil // what slowed the previous answer down
	if e == healthEndpoint && in.fault.Health != HealthFollow {
		s.answer(ctx, e, n)
		if in.fault.Health == HealthFail {
			ctx.Error("unhealthy, as asked\n", fasthttp.StatusServiceUnavailable)
		}
		return false
	}
	if !s.misbehave(ctx, in) {
		s.answer(ctx, e, n)
		s.slowBody(ctx, in)
	}
	if s.stoppedBefore.Load() { // a stop ended the wait, maybe before the data server knows of it
		ctx.SetConnectionClose()
	}
	return c.closed.Load()
}

// finish names the instance and counts the answer.
func (s *Server) finish(ctx *fasthttp.RequestCtx, e endpoint) {
	s.sign(ctx)
	s.answers[e][ctx.Response.StatusCode()].Add(1)
}

// sign names the instance.
func (s *Server) sign(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.SetBytesKV(instanceField, s.instanceBytes)
}

// refuse answers what is no HTTP request.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	status := fasthttp.StatusBadRequest
	if _, large := errors.AsType[*fasthttp.ErrSmallBuffer](err); large {
		status = fasthttp.StatusRequestHeaderFieldsTooLarge
	}
	ctx.Error("not a request that this upstream takes\n", status)
	s.finish(ctx, describeEndpoint)
}
