package h1

// Kind says what a field is to a proxy. Other is everything that is forwarded as it came.
type Kind uint8

const (
	Other            Kind = iota
	Dropped               // named by Connection (RFC 9110 section 7.6.1)
	Alias                 // reads like one of those below once '_' or '.' is taken for '-'
	Host                  //
	ContentLength         //
	TransferEncoding      //
	Connection            //
	KeepAlive             // Keep-Alive, Proxy-Connection, HTTP2-Settings
	Upgrade               //
	TE                    //
	Trailer               //
	Expect                //
	ProxyAuth             // Proxy, Proxy-Authorization, Proxy-Authenticate
	MaxForwards           //
	Via                   //
	ForwardedFor          // X-Forwarded-For
	ForwardedProto        // X-Forwarded-Proto
	Forwarding            // Forwarded, X-Real-Ip, X-Forwarded-Host, -Port, -Server, -Prefix
	Date                  //
	SetCookie             //
	NotInTrailer          // content, control and credential fields (RFC 9110 section 6.5.1)
)

type knownField struct {
	name string
	kind Kind
}

var knownFields = []knownField{
	{"host", Host},
	{"content-length", ContentLength},
	{"transfer-encoding", TransferEncoding},
	{"connection", Connection},
	{"keep-alive", KeepAlive},
	{"proxy-connection", KeepAlive},
	{"http2-settings", KeepAlive},
	{"upgrade", Upgrade},
	{"te", TE},
	{"trailer", Trailer},
	{"expect", Expect},
	{"proxy", ProxyAuth},
	{"proxy-authorization", ProxyAuth},
	{"proxy-authenticate", ProxyAuth},
	{"max-forwards", MaxForwards},
	{"via", Via},
	{"x-forwarded-for", ForwardedFor},
	{"x-forwarded-proto", ForwardedProto},
	{"forwarded", Forwarding},
	{"x-real-ip", Forwarding},
	{"x-forwarded-host", Forwarding},
	{"x-forwarded-port", Forwarding},
	{"x-forwarded-server", Forwarding},
	{"x-forwarded-prefix", Forwarding},
	{"date", Date},
	{"set-cookie", SetCookie},
	{"authorization", NotInTrailer},
	{"www-authenticate", NotInTrailer},
	{"content-type", NotInTrailer},
	{"content-encoding", NotInTrailer},
	{"content-range", NotInTrailer},
	{"content-location", NotInTrailer},
	{"content-disposition", NotInTrailer},
	{"content-language", NotInTrailer},
	{"cache-control", NotInTrailer},
	{"expires", NotInTrailer},
	{"age", NotInTrailer},
	{"vary", NotInTrailer},
	{"location", NotInTrailer},
	{"retry-after", NotInTrailer},
	{"range", NotInTrailer},
	{"cookie", NotInTrailer},
	{"status", NotInTrailer},
}

// slots is a hash table of the known fields with open addressing: a free slot ends a search, and
// most names that are not known meet one at once.
var slots = func() (t [256]knownField) {
	for _, f := range knownFields {
		i := slotOf([]byte(f.name))
		for t[i].kind != Other {
			i++
		}
		t[i] = f
	}
	return t
}()

// slotOf hashes what tells the known fields apart: their length, first byte and last byte but one.
func slotOf(name []byte) uint8 {
	n := len(name)
	return uint8(n)*5 + (name[0]|0x20)*5 + (name[n-2]|0x20)*9
}

// KindOf tells the kind of a field name, without regard to case.
func KindOf(name []byte) Kind {
	if len(name) < 2 {
		return Other
	}
	for i := slotOf(name); ; i++ {
		f := &slots[i]
		if f.kind == Other || foldEqual(name, f.name) {
			return f.kind
		}
	}
}

// kindOfAlias is KindOf for a name with '_' or '.' in it.
func kindOfAlias(name []byte) Kind {
	var canonical [24]byte // no known name is longer
	if len(name) > len(canonical) {
		return Other
	}
	for i, c := range name {
		if class[c]&isAlias != 0 {
			c = '-'
		}
		canonical[i] = c
	}
	switch k := KindOf(canonical[:len(name)]); k {
	case Other, Date, SetCookie, NotInTrailer:
		return Other
	default:
		return Alias
	}
}
