// Package token seals the tokens and ids that clients keep for the server, so that the server accepts only those that it has
// given out. It also computes fingerprints of requests, so that a token cannot be used with another request. Both depend on a
// secret in the store. So tokens survive a restart, like the sessions in which they were given out.
//
// It leaves out the contents: server/result makes resume tokens, and server makes partition tokens and transaction ids.
//
// Imports of this module: nothing.
package token

import "encoding/binary"

// ChecksumSize is the length in bytes of the checksum at the end of a token.
const ChecksumSize = 8

// SecretSize is the length in bytes of the secret of a Key.
const SecretSize = 16

// A Key seals tokens and fingerprints requests. Keys with the same secret are equal.
type Key struct{ k0, k1 uint64 }

// NewKey returns the key for a secret.
func NewKey(secret [SecretSize]byte) Key {
	return Key{binary.LittleEndian.Uint64(secret[:8]), binary.LittleEndian.Uint64(secret[8:])}
}

// Seal appends the checksum of dst[start:].
func (k Key) Seal(dst []byte, start int) []byte {
	return binary.BigEndian.AppendUint64(dst, k.Checksum(dst[start:]))
}

// Open checks a token and returns its content without the checksum.
func (k Key) Open(token []byte) (body []byte, ok bool) {
	n := len(token) - ChecksumSize
	if n < 0 || binary.BigEndian.Uint64(token[n:]) != k.Checksum(token[:n]) {
		return nil, false
	}
	return token[:n], true
}
