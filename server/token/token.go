// Package token makes and checks the tokens that clients hold for the server: seals, so that it believes only what it gave out, and
// fingerprints of requests, so that a token cannot be used with another request.
//
// What stands in a token is up to those who make it: resume tokens are server/result's, partition tokens and transaction ids server's.
//
// Imports of this module: nothing.
package token

import (
	"encoding/binary"
	"hash/maphash"
)

// ChecksumSize is the length in bytes of the checksum at the end of a token.
const ChecksumSize = 8

// A Key seals tokens, and fingerprints requests, for the life of one server.
// Sessions live as long, so a token that outlives its key has no session either.
type Key struct{ seed maphash.Seed }

// NewKey draws a key.
func NewKey() Key { return Key{maphash.MakeSeed()} }

// Seal appends the checksum of dst[start:].
func (k Key) Seal(dst []byte, start int) []byte {
	return binary.BigEndian.AppendUint64(dst, maphash.Bytes(k.seed, dst[start:]))
}

// Open checks a token and returns what was sealed in it.
func (k Key) Open(token []byte) (body []byte, ok bool) {
	n := len(token) - ChecksumSize
	if n < 0 || binary.BigEndian.Uint64(token[n:]) != maphash.Bytes(k.seed, token[:n]) {
		return nil, false
	}
	return token[:n], true
}
