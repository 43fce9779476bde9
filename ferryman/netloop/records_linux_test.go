package netloop_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recordClient is a TLS 1.3 client that writes its records itself, which crypto/tls does not let one do, and
// reads by crypto/tls.
type recordClient struct {
	*net.TCPConn
	tls    *tls.Conn
	secret []byte
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
}

const (
	typeHandshake, typeData = 22, 23
	keyUpdateRequested      = "\x18\x00\x00\x01\x01"
)

func newRecordClient(t testing.TB, addr string) *recordClient {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	var keys bytes.Buffer
	s := &recordClient{TCPConn: c.(*net.TCPConn)}
	s.tls = tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, KeyLogWriter: &keys})
	require.NoError(t, s.tls.Handshake())
	require.EqualValues(t, tls.TLS_AES_128_GCM_SHA256, s.tls.ConnectionState().CipherSuite, "the suite that a recordClient knows")
	for line := range strings.Lines(keys.String()) {
		if f := strings.Fields(line); f[0] == "CLIENT_TRAFFIC_SECRET_0" {
			secret, err := hex.DecodeString(f[2])
			require.NoError(t, err)
			s.use(secret)
		}
	}
	require.NotNil(t, s.aead)
	return s
}

// use begins with a new secret (RFC 8446 section 7.3).
func (s *recordClient) use(secret []byte) {
	s.secret, s.seq, s.iv = secret, 0, expand(secret, "iv", 12)
	block, err := aes.NewCipher(expand(secret, "key", 16))
	if err == nil {
		s.aead, err = cipher.NewGCM(block)
	}
	if err != nil {
		panic(err)
	}
}

// expand is HKDF-Expand-Label without a context (RFC 8446 section 7.1).
func expand(secret []byte, label string, n int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	label = "tls13 " + label
	info = append(append(append(info, byte(len(label))), label...), 0)
	key, err := hkdf.Expand(sha256.New, secret, string(info), n)
	if err != nil {
		panic(err)
	}
	return key
}

// record seals one record (RFC 8446 section 5.2).
func (s *recordClient) record(kind byte, payload string) []byte {
	nonce := bytes.Clone(s.iv)
	for i := range 8 {
		nonce[4+i] ^= byte(s.seq >> (56 - 8*i))
	}
	s.seq++
	inner := append([]byte(payload), kind)
	head := binary.BigEndian.AppendUint16([]byte{typeData, 3, 3}, uint16(len(inner)+s.aead.Overhead()))
	return s.aead.Seal(head, nonce, inner, head)
}

// keyUpdate asks the server for new keys and goes on with new ones.
func (s *recordClient) keyUpdate() []byte {
	b := s.record(typeHandshake, keyUpdateRequested)
	s.use(expand(s.secret, "traffic upd", sha256.Size))
	return b
}

func (s *recordClient) send(t testing.TB, records ...[]byte) {
	t.Helper()
	_, err := s.TCPConn.Write(bytes.Join(records, nil))
	require.NoError(t, err)
}
