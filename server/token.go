package server

import (
	"encoding/binary"
	"hash/maphash"
)

// checksumSize is the length of the checksum at the end of a token.
const checksumSize = 8

// A tokenKey seals tokens, and fingerprints requests, for the life of one server.
// Sessions live as long, so a token that outlives its key has no session either.
type tokenKey struct{ seed maphash.Seed }

func newTokenKey() tokenKey { return tokenKey{maphash.MakeSeed()} }

// seal appends the checksum of dst[start:].
func (k tokenKey) seal(dst []byte, start int) []byte {
	return binary.BigEndian.AppendUint64(dst, maphash.Bytes(k.seed, dst[start:]))
}

// open checks a token and returns what was sealed in it.
func (k tokenKey) open(token []byte) (body []byte, ok bool) {
	n := len(token) - checksumSize
	if n < 0 || binary.BigEndian.Uint64(token[n:]) != maphash.Bytes(k.seed, token[:n]) {
		return nil, false
	}
	return token[:n], true
}
