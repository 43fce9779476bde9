// Package certificate is a certificate chain with its key, read from two PEM files and read again when they
// change. A pair that is cut short, damaged or does not match leaves the old one in use.
//
//	pair, err := certificate.Load("cert.pem", "key.pem")
//	go pair.Watch(ctx, nil, func(err error) { ... })
//	config := &tls.Config{GetCertificate: pair.GetCertificate}
//
// It does not verify the chain: who issued the certificate, and for whom, is the clients' business.
//
// certificate.go reads and watches a pair, expiry.go tells when one ends.
package certificate
