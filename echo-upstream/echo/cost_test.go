package echo

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

func TestEcho_AllocatesNothingOfItsOwn(t *testing.T) {
	s := New(Options{Instance: "a"})
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.SetRequestURI("/svc-a/echo")
	serve := func() {
		ctx.Response.Reset()
		s.handle(ctx)
	}
	serve() // the response's buffers grow once
	require.Equal(t, 200, ctx.Response.StatusCode())
	require.Zero(t, testing.AllocsPerRun(1000, serve))
	// The gate must be able to fail.
	ctx.Request.SetRequestURI("/describe")
	require.NotZero(t, testing.AllocsPerRun(100, serve))
}

func TestChoose_LooksAtTheRawEndOfThePath(t *testing.T) {
	for _, tc := range []struct {
		target string
		want   endpoint
		n      int
	}{
		{"/echo", echoEndpoint, 0}, {"/a/echo?b=/bytes/1", echoEndpoint, 0}, {"/echo/", describeEndpoint, 0}, {"/xecho", describeEndpoint, 0},
		{"/health", healthEndpoint, 0}, {"/svc-a/health", describeEndpoint, 0},
		{"/bytes/12", bytesEndpoint, 12}, {"/svc/bytes/0", bytesEndpoint, 0}, {"/bytes/-1", describeEndpoint, 0},
		{"/bytes/99999999999", describeEndpoint, 0}, {"/bytes/1073741825", describeEndpoint, 0}, {"/bytes/", describeEndpoint, 0},
		{"/a%2Fecho", describeEndpoint, 0}, {"/status/503", statusEndpoint, 503}, {"/chunked/7", chunkedEndpoint, 7},
		{"/stream?chunks=1", streamEndpoint, 0}, {"/trailers", trailersEndpoint, 0}, {"*", describeEndpoint, 0}, {"", describeEndpoint, 0},
	} {
		e, n := choose([]byte(tc.target))
		require.Equal(t, endpointNames[tc.want], endpointNames[e], tc.target)
		require.Equal(t, tc.n, n, tc.target)
	}
}

func BenchmarkEcho_Handler(b *testing.B) {
	s := New(Options{Instance: "a"})
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.SetRequestURI("/echo")
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		s.handle(ctx)
	}
}
