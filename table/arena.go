package table

import "unsafe"

// textChunk is the size in bytes of a chunk of memory into which a textArena copies strings. A string that lives long
// keeps its whole chunk in memory, so chunks are small.
const textChunk = 4 << 10

// textArena copies text into chunks that many strings share. It never reuses a chunk, so a string stays valid as long
// as it is referenced.
type textArena struct{ chunk []byte }

func (a *textArena) copy(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > textChunk/4 {
		return string(b)
	}
	if len(b) > cap(a.chunk)-len(a.chunk) {
		a.chunk = make([]byte, 0, textChunk)
	}
	at := len(a.chunk)
	a.chunk = append(a.chunk, b...)
	return unsafe.String(&a.chunk[at], len(b))
}
