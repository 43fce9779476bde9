// Package logqueue lets a program log without ever waiting for whoever reads its log. It is a bounded queue
// that one goroutine of its own drains; what does not fit is dropped whole and counted, and one line tells of
// it once the reader is back.
//
// The queue has two faces. Writer is an io.Writer of whole lines before another one:
//
//	stderr := logqueue.NewWriter(os.Stderr, notice)
//	defer stderr.Close(time.Second)
//	log := slog.New(logqueue.Unblocked(slog.NewTextHandler(stderr, nil), stderr.Lost))
//
// Handler is a slog.Handler before another one, which may do what it likes:
//
//	h := logqueue.NewHandler(options.Logger.Handler())
//	defer h.Close(time.Second)
//
// Neither starts files anew, filters, or repeats what failed. Repeats, beside them, keeps trouble that goes on to
// one line in a while.
package logqueue
