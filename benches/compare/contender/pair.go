package contender

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Pair is a certificate for loopback that vouches for itself, and its key. All contenders use it.
type Pair struct {
	Cert, Key, Both string // files; Both holds certificate and key
	Roots           *x509.CertPool
}

// NewPair makes a certificate with an ECDSA key on P-256 and writes it into dir.
func NewPair(dir string) (Pair, error) {
	p := Pair{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), Both: filepath.Join(dir, "both.pem"), Roots: x509.NewCertPool()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, err
	}
	now := time.Now()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(7 * 24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}}, &key.PublicKey, key)
	if err != nil {
		return p, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return p, err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	p.Roots.AppendCertsFromPEM(cert)
	return p, errors.Join(
		os.WriteFile(p.Cert, cert, 0o644),
		os.WriteFile(p.Key, secret, 0o600),
		os.WriteFile(p.Both, append(cert, secret...), 0o600),
	)
}
