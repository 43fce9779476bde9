package redteam

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"strings"
	"time"
)

// settings keep the circuits closed whatever an upstream does, and its checks away: else an attack would end
// before it is felt.
const settings = `failure_threshold = 1000000
health_interval_secs = 3600
connect_timeout_secs = 5
upstream_timeout_secs = %d
`

// configure is a configuration with a route for each of the upstream's moods, and the bystander's.
func configure(u *upstream, bystander string, upstreamTimeout int) string {
	var b strings.Builder
	fmt.Fprintf(&b, settings, upstreamTimeout)
	for name := range u.places {
		b.WriteString(route(name, u.addr(name)))
	}
	if bystander != "" {
		b.WriteString(route(bystanderMood.name, bystander))
	}
	return b.String()
}

func route(name, addr string) string {
	return fmt.Sprintf("[[routes]]\nprefix = \"/%s\"\nupstream = \"http://%s\"\n", name, addr)
}

// writeCertificate makes a self-signed pair for localhost.
func writeCertificate(certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	tpl := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &tpl, &tpl, &key.PublicKey, key)
	if err != nil {
		return err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600)
}
