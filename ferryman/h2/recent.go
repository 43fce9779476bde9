package h2

import "slices"

// maxRecent is how many streams a Recent knows: several times as many as can be under way to a peer that has not
// heard of the end of the first.
const maxRecent = 1024

// Recent is the streams that one side has ended lately although the other had not: what that one sent before it knew
// is ignored (RFC 9113 section 5.1). The zero value is empty.
type Recent struct {
	ids  []uint32 // the last ones; 0 where both sides have ended
	next int
}

// Add notes a stream. The oldest is forgotten where they are too many.
func (r *Recent) Add(id uint32) {
	switch {
	case r.Has(id):
	case len(r.ids) < maxRecent:
		r.ids = append(r.ids, id)
	default:
		r.ids[r.next%maxRecent] = id
		r.next++
	}
}

// Has reports a stream that was ended lately by this side alone.
func (r *Recent) Has(id uint32) bool { return slices.Contains(r.ids, id) }

// Ended notes that the other side has ended the stream as well.
func (r *Recent) Ended(id uint32) {
	if i := slices.Index(r.ids, id); i >= 0 {
		r.ids[i] = 0
	}
}
