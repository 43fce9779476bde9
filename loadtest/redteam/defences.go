package redteam

// Defences are those of the source as it is. Whoever changes one changes its row: prove says which text it misses.
var Defences = []Defence{
	{
		Name: "streams thrown away are counted", File: "resets_h2.go", Attack: "rapid-reset",
		Old: "maxWaste    = 1000 ", New: "maxWaste    = 1 << 30 ",
	},
	{
		Name: "answers that nobody reads are bounded", File: "outgoing_h2.go", Attack: "unheard",
		Old: "maxUnheard         = 64 << 10", New: "maxUnheard         = 64 << 30",
	},
	{
		Name: "settings of a frame are counted", File: "frames_h2.go", Attack: "control-frames",
		Old: "f.NumSettings() > 100", New: "f.NumSettings() > 100_000",
	},
	{
		Name: "header lists have a limit", File: "client_h2.go", Attack: "header-bombs",
		Old: "maxHeaderList = h1.MaxHead + 32*(h1.MaxFields+8)", New: "maxHeaderList = 1 << 30",
	},
	{
		Name: "streams of a connection have a limit", File: "frames_h2.go", Attack: "many-streams",
		Old: "case c.open >= maxStreams:", New: "case c.open >= 100*maxStreams:",
	},
	{
		Name: "bodies of a connection share a window", File: "client_h2.go", Attack: "unread-h2",
		Old: "connWindow   = 1 << 20", New: "connWindow   = 1 << 30",
	},
	{
		Name: "a head has 10 s", File: "internal/limits/limits.go", Attack: "trickles",
		Old: "Head = 10 * time.Second", New: "Head = 1000 * time.Second",
	},
	{
		Name: "a handshake has 10 s", File: "internal/limits/limits.go", Attack: "trickles",
		Old: "Handshake = 10 * time.Second", New: "Handshake = 1000 * time.Second",
	},
	{
		Name: "what nobody reads may not pause", File: "linger.go", Attack: "lingering",
		Old: "lingerPause = 5 * time.Second", New: "lingerPause = 25 * time.Second",
	},
	{
		Name: "what nobody reads may not go on", File: "linger.go", Attack: "lingering",
		Old: "lingerTime  = 30 * time.Second", New: "lingerTime  = 300 * time.Second",
	},
	{
		Name: "a client that leaves is noticed (HTTP/1.1)", File: "client_h1.go", Attack: "heads-hang",
		Old: "c.raw.Guard(up.Conn)", New: "_ = up.Conn",
	},
	{
		Name: "a client that leaves is noticed (HTTP/2)", File: "stream_h2.go", Attack: "gone-clients",
		Old: "s.victim.Abort()", New: "_ = s.victim",
	},
	{
		Name: "a connection is pooled only with nothing left in it", File: "upstream/upstream.go", Attack: "crossing", Race: true,
		Old: "c.In.Buffered() > 0 || c.up.retired.Load() || !c.SeemsQuiet() {\n\t\tc.Discard()\n\t\treturn\n\t}\n\tc.In.Release()",
		New: "c.up.retired.Load() || !c.SeemsQuiet() {\n\t\tc.Discard()\n\t\treturn\n\t}",
	},
	{
		Name: "the lock of the table of connections", File: "clients.go", Attack: "crossing", Race: true,
		Old: "c.state.Store(clientClosed)\n\ts.mu.Lock()\n\tdefer s.mu.Unlock()", New: "c.state.Store(clientClosed)",
	},
}
