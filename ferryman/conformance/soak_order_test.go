package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// order is one request of the soak, whatever the protocol.
type order struct {
	route, path, method, nonce string
	up                         int  // bytes of body; -1: none
	chunked                    bool // or with a length
	want                       int  // bytes of the answer's body
	hangs                      bool
}

// pattern is a body of n bytes that belongs to one request only.
func pattern(nonce string, n int) string {
	if n <= 0 || nonce == "" {
		return ""
	}
	return strings.Repeat(nonce, n/len(nonce)+1)[:n]
}

func (s *soak) order() order {
	o := order{route: "/steady", method: "GET", nonce: nonce(), up: -1, want: soakSize()}
	switch n := rand.IntN(100); {
	case n < 30:
		o.route = "/flap"
	case n < 40:
		o.route = "/moves"
	case n < 43:
		o.route = "/down"
	case n < 44:
		o.route = "none"
	case n < 46 && s.hang.TryLock():
		o.route, o.hangs = "/hang", true
	}
	o.path = o.route + "/" + o.nonce
	if o.route == "none" {
		o.path = "/nowhere"
	}
	switch n := rand.IntN(10); {
	case n < 3:
		o.method, o.up, o.chunked = "POST", soakSize(), rand.IntN(2) == 0
	case n < 4:
		o.method, o.up = "PUT", soakSize()
	case n < 5:
		o.method = []string{"HEAD", "DELETE", "OPTIONS"}[rand.IntN(3)]
	}
	return o
}

// done gives back what the order holds.
func (s *soak) done(o order) {
	if o.hangs {
		s.hang.Unlock()
	}
}

// soakSize is small as a rule, at the edge of a buffer now and then, and seldom large.
func soakSize() int {
	switch n := rand.IntN(20); {
	case n < 12:
		return rand.IntN(500)
	case n < 18:
		return []int{0, 1, 4096, 16384, 32768}[rand.IntN(5)] + rand.IntN(40)
	default:
		return rand.IntN(200_000)
	}
}

// fields are the field lines that tell the upstream what to expect and what to answer.
func (o order) fields() []string {
	return []string{"X-Nonce", o.nonce, "X-Length", fmt.Sprint(max(0, o.up)), "X-Want", fmt.Sprint(o.want)}
}

// outcome is what a client got. err: the head came, the body not to its end.
type outcome struct {
	status int
	get    func(string) string
	body   []byte
	err    error
}

var soakOwn = map[string][]int{
	"/flap": {502, 503, 504}, "/hang": {503, 504}, "/down": {502, 503}, "none": {404},
}

var soakTexts = map[int]string{404: "no route", 502: "bad gateway", 503: "upstream unavailable", 504: "gateway timeout"}

// answered counts an answer and checks that it is that of its request, and as whole as it seems.
func (s *soak) answered(o order, a outcome) {
	s.count(o, func(r *soakTally) { r.answered[a.status]++ })
	want := pattern(o.nonce, o.want)
	if o.method == "HEAD" || a.status == 204 {
		want = ""
	}
	switch {
	case a.get("X-Poison") != "":
		s.fail("%s %s: poison", o.method, o.path)
	case a.get("X-U") == "":
		if text := soakTexts[a.status]; o.method != "HEAD" && string(a.body) != text || a.err != nil || !slices.Contains(soakOwn[o.route], a.status) {
			s.fail("%s %s: own reply %d %q %v", o.method, o.path, a.status, a.body, a.err)
		}
		if (a.status == 503) != (a.get("Retry-After") != "") {
			s.fail("%s %s: own reply %d with Retry-After %q", o.method, o.path, a.status, a.get("Retry-After"))
		}
	case a.get("X-Nonce") != o.nonce:
		s.fail("%s %s: the answer of another request, %q for %q", o.method, o.path, a.get("X-Nonce"), o.nonce)
	case a.get("X-Cut") != "":
		if a.err == nil || !strings.HasPrefix(want, string(a.body)) {
			s.fail("%s %s: a cut answer looks whole: %d of %d bytes, %v", o.method, o.path, len(a.body), len(want), a.err)
		}
	case a.err != nil || string(a.body) != want:
		s.fail("%s %s: %d with %d of %d bytes, as sent: %v, %v", o.method, o.path, a.status, len(a.body), len(want),
			strings.HasPrefix(want, string(a.body)), a.err)
	}
}
