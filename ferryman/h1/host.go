package h1

import (
	"bytes"
	"net/netip"
)

// ValidHost accepts uri-host [ ":" port ] of RFC 9110 section 4.2.1 without userinfo, without
// percent-encoding and without empty labels, so that no two readers see two hosts in it.
func ValidHost(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	if b[0] == '[' {
		end := bytes.IndexByte(b, ']')
		if end < 0 {
			return false
		}
		address, err := netip.ParseAddr(string(b[1:end]))
		if err != nil || !address.Is6() || address.Zone() != "" {
			return false
		}
		return end+1 == len(b) || b[end+1] == ':' && validPort(b[end+2:])
	}
	if i := bytes.IndexByte(b, ':'); i >= 0 {
		if !validPort(b[i+1:]) {
			return false
		}
		b = b[:i]
	}
	label := 0
	for _, c := range b {
		if class[c]&isHost == 0 {
			return false
		}
		if c != '.' {
			label++
			continue
		}
		if label == 0 {
			return false
		}
		label = 0
	}
	return len(b) > 0
}

func validPort(b []byte) bool {
	n, ok := decimal(b)
	return ok && len(b) <= 5 && n <= 65535
}
