package table

import "unsafe"

// textChunk is small enough that a string kept for long does not keep much else.
const textChunk = 4 << 10

// textArena copies text into chunks that many strings share. Chunks are never
// used again: a string stays valid for as long as there are references to it.
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
