package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/Bunty9/ferryman/ferryman/internal/filewatch"
)

// kind and maxMiB are what the files are called and may have.
const kind, maxMiB = "a certificate or key", 1

// Pair is a certificate chain with its key. Load makes it; its methods may be called from any goroutine.
type Pair struct {
	certFile, keyFile string
	current           atomic.Pointer[loaded]
}

// loaded is what the two files held.
type loaded struct {
	contents [][]byte
	parsed   tls.Certificate
}

// Load reads a pair. The error says which file is at fault and what to do.
func Load(certFile, keyFile string) (*Pair, error) {
	p := &Pair{certFile: certFile, keyFile: keyFile}
	var contents [][]byte
	for _, name := range p.names() {
		content, err := filewatch.Read(name, kind, maxMiB)
		if err != nil {
			return nil, p.blame(err)
		}
		contents = append(contents, content)
	}
	return p, p.use(contents)
}

func (p *Pair) names() []string { return []string{p.certFile, p.keyFile} }

// blame says which of the two files an error is about.
func (p *Pair) blame(err error) error {
	var file *filewatch.Error
	if errors.As(err, &file) && file.Name != p.certFile {
		return fmt.Errorf("TLS key: %w", err)
	}
	return fmt.Errorf("TLS certificate: %w", err)
}

// use puts a pair in use if it is whole.
func (p *Pair) use(contents [][]byte) error {
	parsed, err := parse(p.certFile, p.keyFile, contents[0], contents[1])
	if err == nil {
		p.current.Store(&loaded{contents, parsed})
	}
	return err
}

// Watch reads the files again when they have changed and rested, or at once on poke (may be nil), until ctx
// ends, and reports each change and each new failure. It does not wait for a file system that hangs.
func (p *Pair) Watch(ctx context.Context, poke <-chan struct{}, report func(error)) {
	failed := ""
	f := filewatch.Files{Names: p.names(), Kind: kind, MiB: maxMiB, Known: p.current.Load().contents}
	_ = filewatch.Watch(ctx, f, poke, func(contents [][]byte, err error) {
		same := slices.EqualFunc(contents, p.current.Load().contents, bytes.Equal)
		switch {
		case err != nil:
			err = p.blame(err)
		case !same:
			err = p.use(contents)
		}
		switch {
		case err != nil && err.Error() != failed:
			failed = err.Error()
			report(err)
		case err == nil:
			failed = ""
			if !same {
				report(nil)
			}
		}
	})
}

// GetCertificate is for tls.Config.
func (p *Pair) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &p.current.Load().parsed, nil
}

// Name is the certificate's file.
func (p *Pair) Name() string { return p.certFile }

// Expires is when the certificate itself does. Those of its issuers may go before: a chain often holds some
// that few clients need, and they are renewed with it.
func (p *Pair) Expires() time.Time { return p.current.Load().parsed.Leaf.NotAfter }
