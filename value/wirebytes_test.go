package value

import (
	"bytes"
	"encoding/base64"
	"testing"
)

// TestEncodeBase64 compares encodeBase64 with the standard library, for inputs of all lengths up to 319 bytes. Long
// inputs contain every byte value. encodeBase64 must not write beyond the end of its result.
func TestEncodeBase64(t *testing.T) {
	all := make([]byte, 256+64)
	for i := range all {
		all[i] = byte(i * 7)
	}
	for n := range len(all) {
		b := all[len(all)-n:]
		want := base64.StdEncoding.AppendEncode(nil, b)
		got := append(make([]byte, len(want)), "behind"...)
		encodeBase64(got[:len(want)], b)
		if !bytes.Equal(got, append(want, "behind"...)) {
			t.Errorf("%x is %s, want %s", b, got, want)
		}
	}
}

func BenchmarkEncodeBase64(b *testing.B) {
	in := make([]byte, 350)
	for i := range in {
		in[i] = byte(i * 77)
	}
	out := make([]byte, base64.StdEncoding.EncodedLen(len(in)))
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			encodeBase64(out, in)
		}
	})
	b.Run("standard", func(b *testing.B) {
		for b.Loop() {
			base64.StdEncoding.Encode(out, in)
		}
	})
}
