// Package token seals the tokens and ids that clients hold for the server, so that the server takes only those that it has given out, and
// makes fingerprints of requests, so that a token cannot be used with another request. Both depend on a secret that the store keeps:
// sessions survive a restart, and so do the tokens that were given out in them.
//
// It leaves out the contents: server/result makes resume tokens, server partition tokens and transaction ids.
//
// Imports of this module: nothing.
package token

import "encoding/binary"

// ChecksumSize is the length in bytes of the checksum at the end of a token.
const ChecksumSize = 8

// SecretSize is the length in bytes of the secret of a Key.
const SecretSize = 16

// A Key seals tokens and fingerprints requests. Keys of the same secret are equal.
type Key struct{ k0, k1 uint64 }

// NewKey makes the key of a secret.
func NewKey(secret [SecretSize]byte) Key {
	return Key{binary.LittleEndian.Uint64(secret[:8]), binary.LittleEndian.Uint64(secret[8:])}
}

// Seal appends the checksum of dst[start:].
func (k Key) Seal(dst []byte, start int) []byte {
	return binary.BigEndian.AppendUint64(dst, k.Checksum(dst[start:]))
}

// Open checks a token and returns what was sealed in it.
func (k Key) Open(token []byte) (body []byte, ok bool) {
	n := len(token) - ChecksumSize
	if n < 0 || binary.BigEndian.Uint64(token[n:]) != k.Checksum(token[:n]) {
		return nil, false
	}
	return token[:n], true
}
