package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"
)

// parse is strict where crypto/tls skips what it cannot read: the half of a chain is no chain.
func parse(certFile, keyFile string, cert, key []byte) (tls.Certificate, error) {
	cert, key = trimMark(cert), trimMark(key)
	if err := checkCertificates(certFile, cert, certFile == keyFile); err != nil {
		return tls.Certificate{}, fmt.Errorf("TLS certificate: %w", err)
	}
	if err := checkKey(keyFile, key); err != nil {
		return tls.Certificate{}, fmt.Errorf("TLS key: %w", err)
	}
	parsed, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("TLS pair %s and %s: %w: use a PEM certificate, before those of its issuers, and the key it was issued for",
			certFile, keyFile, err)
	}
	return parsed, nil
}

// trimMark skips the byte order mark that some editors write.
func trimMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) }

// checkCertificates insists on certificates and nothing else, unless the file is the key's, too.
func checkCertificates(file string, text []byte, shared bool) error {
	found, err := blocks(file, text)
	if err != nil {
		return err
	}
	n := 0
	for _, b := range found {
		switch {
		case b.Type != "CERTIFICATE" && shared:
			continue
		case b.Type != "CERTIFICATE":
			return fmt.Errorf("%s:%d: is a block of type %q: leave only certificates in this file", file, b.line, b.Type)
		}
		if _, err := x509.ParseCertificate(b.Bytes); err != nil {
			return fmt.Errorf("%s:%d: this certificate cannot be read (%w): copy the file again", file, b.line, err)
		}
		n++
	}
	if n == 0 {
		return fmt.Errorf("%s: holds no certificate: name a PEM file", file)
	}
	return nil
}

// checkKey insists on a key that needs no passphrase.
func checkKey(file string, text []byte) error {
	found, err := blocks(file, text)
	if err != nil {
		return err
	}
	for _, b := range found {
		switch {
		case b.Type == "ENCRYPTED PRIVATE KEY", strings.Contains(b.Headers["Proc-Type"], "ENCRYPTED"):
			return fmt.Errorf("%s:%d: is encrypted: take the passphrase off it (openssl pkey)", file, b.line)
		case b.Type == "PRIVATE KEY", strings.HasSuffix(b.Type, " PRIVATE KEY"):
			return nil
		}
	}
	return fmt.Errorf("%s: holds no private key: name a PEM file", file)
}

// block is one of a PEM file, with the line that it begins in.
type block struct {
	*pem.Block
	line int
}

// fragment is a line that belongs to a block and stands outside of one. What people and tools write between
// blocks (RFC 7468 section 5.2) has blanks or punctuation.
var fragment = regexp.MustCompile(`^[A-Za-z0-9+/]+={0,2}$|-(BEGIN|END) |[\x00-\x08\x0e-\x1f\x7f]`)

// blocks splits a PEM file. pem.Decode skips what is damaged, or cut short at the end of the file; here it is
// an error.
func blocks(file string, text []byte) (found []block, err error) {
	begin, began, n := 0, 0, 0 // offset and line (0: none) of the block that is open; the line
	for at := 0; at < len(text); {
		n++
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		line := bytes.TrimSpace(text[at:end])
		switch begins := bytes.HasPrefix(line, []byte("-----BEGIN ")); {
		case begins && began > 0:
			return nil, fmt.Errorf("%s:%d: the block that begins here has no end: copy the file again", file, began)
		case begins:
			begin, began = at, n
		case began == 0 && fragment.Match(line):
			return nil, fmt.Errorf("%s:%d: this line is outside of any block: copy the file again", file, n)
		case began > 0 && bytes.HasPrefix(line, []byte("-----END ")):
			b, rest := pem.Decode(text[begin:end])
			if b == nil || len(rest) > 0 {
				return nil, fmt.Errorf("%s:%d: the block that begins here is damaged: copy the file again", file, began)
			}
			found = append(found, block{b, began})
			began = 0
		}
		at = end
	}
	if began > 0 {
		return nil, fmt.Errorf("%s:%d: the file ends within the block that begins here: copy it again", file, began)
	}
	return found, nil
}
