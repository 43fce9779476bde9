package contender

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Request is one of a workload, with the one right answer.
type Request struct {
	Method string
	Path   string
	Body   []byte // nil: none
	HTTP2  bool
	Want   []byte // the right body of the answer; its status is 200
}

// The one cipher suite that every contender uses, so that none wins by another choice.
const wantCipher = tls.TLS_AES_128_GCM_SHA256

// described is what the upstream says about a request that reached it.
type described struct {
	Method     string      `json:"method"`
	Target     string      `json:"target"`
	Fields     [][2]string `json:"fields"`
	BodyLength int         `json:"body_length"`
	BodySHA256 string      `json:"body_sha256"`
}

// Verify returns why the contender's answers must not be measured, or nil: it asks for the workload's
// answer, and asks the upstream what it got to see.
func (r *Running) Verify(ctx context.Context, q Request) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client := r.client(q.HTTP2)
	defer client.CloseIdleConnections()
	for range 3 { // the second and third show whether connections can be used again
		body, err := r.ask(ctx, client, q, q.Path)
		if err != nil {
			return err
		}
		if !bytes.Equal(body, q.Want) {
			return fmt.Errorf("%s %s: wrong body, %d bytes instead of %d", q.Method, q.Path, len(body), len(q.Want))
		}
	}
	const probe = "/verify/a%2Fb?x=1&y=%20"
	body, err := r.ask(ctx, client, q, probe)
	if err != nil {
		return err
	}
	var d described
	if err := json.Unmarshal(body, &d); err != nil {
		return fmt.Errorf("%s: %w", probe, err)
	}
	return r.compare(d, q, probe)
}

// compare checks what reached the upstream.
func (r *Running) compare(d described, q Request, target string) error {
	sum := sha256.Sum256(q.Body)
	switch {
	case d.Method != q.Method || d.Target != target:
		return fmt.Errorf("the upstream got %s %s instead of %s %s", d.Method, d.Target, q.Method, target)
	case d.BodyLength != len(q.Body), len(q.Body) > 0 && d.BodySHA256 != hex.EncodeToString(sum[:]):
		return fmt.Errorf("the upstream got another body: %d bytes, %d were sent", d.BodyLength, len(q.Body))
	case !r.Forwards:
		return nil
	}
	scheme := "http"
	if r.Site.TLS {
		scheme = "https"
	}
	for _, want := range [][2]string{{"X-Forwarded-For", "127.0.0.1"}, {"X-Forwarded-Proto", scheme}} {
		if got := d.values(want[0]); len(got) != 1 || got[0] != want[1] {
			return fmt.Errorf("the upstream got %s %q instead of %q", want[0], got, want[1])
		}
	}
	return nil
}

func (d described) values(name string) (values []string) {
	for _, f := range d.Fields {
		if strings.EqualFold(f[0], name) {
			values = append(values, f[1])
		}
	}
	return values
}

// ask returns the body of a right answer.
func (r *Running) ask(ctx context.Context, client *http.Client, q Request, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, q.Method, r.URL(path), bytes.NewReader(q.Body))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.Method, path, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: status %s", q.Method, path, response.Status)
	}
	wantProto := 1
	if q.HTTP2 {
		wantProto = 2
	}
	if response.ProtoMajor != wantProto {
		return nil, fmt.Errorf("%s %s: answered over %s", q.Method, path, response.Proto)
	}
	if s := response.TLS; s != nil && (s.Version != tls.VersionTLS13 || s.CipherSuite != wantCipher) {
		return nil, fmt.Errorf("agreed on %s with %s instead of TLS 1.3 with %s", tls.VersionName(s.Version), tls.CipherSuiteName(s.CipherSuite), tls.CipherSuiteName(wantCipher))
	}
	return body, nil
}

func (r *Running) client(http2 bool) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	return &http.Client{Transport: &http.Transport{
		Protocols: protocols, DisableCompression: true,
		TLSClientConfig: &tls.Config{RootCAs: r.Site.Pair.Roots},
	}}
}
