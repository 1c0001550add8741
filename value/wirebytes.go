package value

import (
	"encoding/base64"
	"encoding/binary"
)

// appendBytesField appends BYTES as a whole field (see AppendWireField). It computes the length first, so that it does
// not have to move a long value afterwards.
func appendBytesField(dst []byte, tag byte, b []byte) []byte {
	n := base64.StdEncoding.EncodedLen(len(b))
	dst = appendWireHead(dst, tag, 1+uvarintSize(uint64(n))+n)
	return appendWireBytes(dst, b)
}

func appendWireBytes(dst, b []byte) []byte {
	n := base64.StdEncoding.EncodedLen(len(b))
	dst = extend(appendWireHead(dst, wireString, n), n)
	encodeBase64(dst[len(dst)-n:], b)
	return dst
}

// base64Pairs maps each 12-bit number to its two base64 characters. The first character is in the lower byte.
var base64Pairs = func() (pairs [1 << 12]uint16) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range pairs {
		pairs[i] = uint16(alphabet[i>>6]) | uint16(alphabet[i&63])<<8
	}
	return pairs
}()

// encodeBase64 does the same as base64.StdEncoding.Encode in half the time. It encodes six bytes at once, two
// characters at a time, with a table of 8 kB.
func encodeBase64(dst, b []byte) {
	for len(b) >= 8 && len(dst) >= 8 {
		v := binary.BigEndian.Uint64(b)
		binary.LittleEndian.PutUint64(dst, uint64(base64Pairs[v>>52])|uint64(base64Pairs[v>>40&0xfff])<<16|
			uint64(base64Pairs[v>>28&0xfff])<<32|uint64(base64Pairs[v>>16&0xfff])<<48)
		dst, b = dst[8:], b[6:]
	}
	base64.StdEncoding.Encode(dst, b)
}
