package redteam

// Defences are those of the source as it is. Whoever changes one changes its row: prove says which text it misses.
var Defences = []Defence{
	{
		Name: "large heads are held only while they are worked on", File: "frontend/request_h2.go", Attack: "references",
		Old: "return s.fields.Size > maxScratch }",
		New: "return false }",
	},
	{
		Name: "header lists have a limit", File: "h2/decode.go", Attack: "header-bombs",
		Old: "if to.listed > MaxList || len(to.List) == maxFields {",
		New: "if to.listed > 1000*MaxList {",
	},
	{
		Name: "streams of a connection have a limit", File: "frontend/headers_h2.go", Attack: "many-streams",
		Old: "case c.open >= maxStreams:",
		New: "case c.open >= 100*maxStreams:",
	},
	{
		Name: "frames that achieve nothing are counted", File: "frontend/abuse_h2.go", Attack: "control-frames",
		Old: "c.wasted += n",
		New: "_ = n",
	},
	{
		Name: "streams reset right after opening are counted", File: "frontend/abuse_h2.go", Attack: "rapid-reset",
		Old: "maxWaste    = 1000 ",
		New: "maxWaste    = 1 << 30 ",
	},
	{
		Name: "late frames are ignored", File: "h2/recent.go", Attack: "late-frames",
		Old: "return slices.Contains(r.ids, id) }",
		New: "return slices.Contains(r.ids[:min(len(r.ids), 16)], id) }",
	},
	{
		Name: "an idle connection holds no frame", File: "frontend/frames_h2.go", Attack: "idle-tls",
		Old: "if c.frames != nil && !c.blocks.Gathering() {",
		New: "if c.frames != nil && c.blocks == nil {",
	},
	{
		Name: "time limit of a request head", File: "internal/limits/limits.go", Attack: "trickles",
		Old: "Head = 10 * time.Second",
		New: "Head = 1000 * time.Second",
	},
	{
		Name: "time limit of a TLS handshake", File: "internal/limits/limits.go", Attack: "trickles",
		Old: "Handshake = 10 * time.Second",
		New: "Handshake = 1000 * time.Second",
	},
	{
		Name: "lingering close: 5 s without data at most", File: "frontend/linger.go", Attack: "lingering",
		Old: "lingerPause = 5 * time.Second",
		New: "lingerPause = 25 * time.Second",
	},
	{
		Name: "lingering close: 30 s in total at most", File: "frontend/linger.go", Attack: "lingering",
		Old: "lingerTime  = 30 * time.Second",
		New: "lingerTime  = 300 * time.Second",
	},
	{
		Name: "a client that leaves is noticed (HTTP/1.1)", File: "frontend/conn_h1.go", Attack: "heads-hang",
		Old: "c.raw.Guard(victim)",
		New: "_ = victim",
	},
	{
		Name: "memory is returned after a burst", File: "cmd/ferryman/collect.go", Attack: "references",
		Old: "if c.due == 0 {\n\t\treturn false\n\t}\n\tif",
		New: "if true {\n\t\treturn false\n\t}\n\tif",
	},
	{
		Name: "a connection is pooled only with an empty buffer", File: "upstream/conn.go", Attack: "crossing", Race: true,
		Old: "if c.In.Buffered() > 0 || !c.SeemsQuiet() {\n\t\tc.noteStray(c.since)\n\t\tc.Discard()\n\t\treturn\n\t}\n\tif c.up.retired.Load() || c.expired(c.since) || c.doubtful && c.up.strays(c.since) {\n\t\tc.Discard()\n\t\treturn\n\t}\n\tc.In.Release()",
		New: "",
	},
	{
		Name: "the lock of the connection registry", File: "frontend/registry.go", Attack: "crossing", Race: true,
		Old: "c.state.Store(connClosed)\n\tr.mu.Lock()\n\tdefer r.mu.Unlock()",
		New: "c.state.Store(connClosed)",
	},
}
