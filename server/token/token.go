// Package token seals the tokens that clients hold for the server, so that the server takes only tokens that it has given out, and
// makes fingerprints of requests, so that a token cannot be used with another request.
//
// It leaves out the contents: server/result makes resume tokens, server partition tokens and transaction ids.
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
// Sessions do not outlive the server either, so a token without its key has lost its session too.
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
