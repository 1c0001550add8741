// Package token seals the tokens and ids that the server gives to clients, so that the server recognizes its own and
// refuses all others. It also computes fingerprints of requests, so that a token cannot be used with another request.
// Seals and fingerprints depend on a secret in the store. So tokens stay valid after a restart, as sessions do.
//
// Other packages decide what their tokens contain: server/result makes resume tokens, server/flight makes tickets, and
// server makes partition tokens and transaction ids.
//
// Imports of this module: nothing.
package token

import "encoding/binary"

// ChecksumSize is the length in bytes of the checksum at the end of a token.
const ChecksumSize = 8

// SecretSize is the length in bytes of the secret of a Key.
const SecretSize = 16

// A Key seals tokens and computes fingerprints of requests. Keys with the same secret are equal.
type Key struct{ k0, k1 uint64 }

// NewKey returns the key for a secret.
func NewKey(secret [SecretSize]byte) Key {
	return Key{binary.LittleEndian.Uint64(secret[:8]), binary.LittleEndian.Uint64(secret[8:])}
}

// Seal makes a token of the bytes dst[start:]: it appends their checksum to dst.
func (k Key) Seal(dst []byte, start int) []byte {
	return binary.BigEndian.AppendUint64(dst, k.Checksum(dst[start:]))
}

// Open checks the checksum of a token, and returns the token without the checksum. ok is false if the checksum is
// wrong.
func (k Key) Open(token []byte) (body []byte, ok bool) {
	n := len(token) - ChecksumSize
	if n < 0 || binary.BigEndian.Uint64(token[n:]) != k.Checksum(token[:n]) {
		return nil, false
	}
	return token[:n], true
}
