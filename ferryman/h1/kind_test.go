package h1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/Bunty9/ferryman/ferryman/h1"
)

// kindsByName says, apart from the code, what each name that the contract mentions is.
var kindsByName = map[string]h1.Kind{
	"Host": h1.Host, "Content-Length": h1.ContentLength, "Transfer-Encoding": h1.TransferEncoding,
	"Connection": h1.Connection, "Keep-Alive": h1.KeepAlive, "Proxy-Connection": h1.KeepAlive,
	"HTTP2-Settings": h1.KeepAlive, "Upgrade": h1.Upgrade, "TE": h1.TE, "Trailer": h1.Trailer,
	"Expect": h1.Expect, "Proxy": h1.ProxyAuth, "Proxy-Authorization": h1.ProxyAuth,
	"Proxy-Authenticate": h1.ProxyAuth, "Max-Forwards": h1.MaxForwards, "Via": h1.Via,
	"X-Forwarded-For": h1.ForwardedFor, "X-Forwarded-Proto": h1.ForwardedProto,
	"Forwarded": h1.Forwarding, "X-Real-Ip": h1.Forwarding, "X-Forwarded-Host": h1.Forwarding,
	"X-Forwarded-Port": h1.Forwarding, "X-Forwarded-Server": h1.Forwarding, "X-Forwarded-Prefix": h1.Forwarding,
	"Date": h1.Date, "Set-Cookie": h1.SetCookie,
	"Authorization": h1.NotInTrailer, "WWW-Authenticate": h1.NotInTrailer, "Content-Type": h1.NotInTrailer,
	"Content-Encoding": h1.NotInTrailer, "Content-Range": h1.NotInTrailer, "Cache-Control": h1.NotInTrailer,
	"Cookie": h1.NotInTrailer, "Location": h1.NotInTrailer, "Vary": h1.NotInTrailer, "Age": h1.NotInTrailer,
	"User-Agent": h1.Other, "Accept": h1.Other, "Accept-Encoding": h1.Other, "Server": h1.Other, "ETag": h1.Other,
	"Upgrade-Insecure-Requests": h1.Other, "X-Nonce": h1.Other, "X": h1.Other, "Proxy-Status": h1.Other,
	"Sec-WebSocket-Key": h1.Other, "X-Forwarded": h1.Other, "X-Forwarded-Fox": h1.Other, "Hosts": h1.Other,
}

func TestKindOf_WithoutRegardToCase(t *testing.T) {
	for name, want := range kindsByName {
		for _, n := range []string{name, strings.ToLower(name), strings.ToUpper(name), swapCase(name)} {
			require.Equal(t, want, h1.KindOf([]byte(n)), n)
		}
	}
	require.Equal(t, h1.Other, h1.KindOf(nil))
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if r|0x20 >= 'a' && r|0x20 <= 'z' {
			return r ^ 0x20
		}
		return r
	}, s)
}

func TestKindOf_OneByteOffIsAnotherField(t *testing.T) {
	for name, kind := range kindsByName {
		if kind == h1.Other {
			continue
		}
		for i := range len(name) {
			for c := range 256 {
				b := []byte(name)
				b[i] = byte(c)
				if strings.EqualFold(string(b), name) && c < 0x80 || kindsByName[string(b)] != 0 {
					continue
				}
				require.Equal(t, h1.Other, h1.KindOf(b), "%q", b)
			}
		}
		for _, n := range []string{name + "s", "X" + name, name + "-", name[1:], name[:len(name)-1]} {
			if _, known := kindsByName[n]; !known && !strings.EqualFold(n, "range") {
				require.Equal(t, h1.Other, h1.KindOf([]byte(n)), n)
			}
		}
	}
}

func TestField_AliasesOfWhatFerrymanWritesOrFramesBy(t *testing.T) { // 57, 78
	for name, kind := range kindsByName {
		for _, other := range []string{"_", "."} {
			alias := strings.ReplaceAll(name, "-", other)
			if alias == name {
				continue
			}
			want := h1.Alias
			if kind == h1.Other || kind >= h1.Date {
				want = h1.Other
			}
			for _, n := range []string{alias, strings.ToLower(alias), strings.Replace(name, "-", other, 1)} {
				r := request(t, with(n+": 1\r\n"))
				require.Equal(t, want, r.Fields[1].Kind, n)
			}
		}
	}
	// An alias frames nothing.
	r := request(t, with("Content-Length: 40\r\n", "Transfer_Encoding: chunked\r\n"))
	require.Equal(t, h1.Alias, r.Fields[2].Kind)
	require.False(t, r.DeclaresChunked())
}

func TestKind_InTrailer(t *testing.T) {
	for name, kind := range kindsByName {
		require.Equal(t, kind == h1.Other, kind.InTrailer(), name)
	}
	require.False(t, h1.Alias.InTrailer())
	require.False(t, h1.Dropped.InTrailer())
}
