package token

import (
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// TestChecksum uses the test vectors of SipHash's reference implementation
// (https://github.com/veorq/SipHash/blob/master/vectors.h): the key is the bytes 0 to 15, and the inputs are the bytes
// 0, 1, 2 and so on, of each length up to 63.
func TestChecksum(t *testing.T) {
	var secret [SecretSize]byte
	for i := range secret {
		secret[i] = byte(i)
	}
	k := NewKey(secret)
	input := make([]byte, 0, 64)
	for i := range 64 {
		input = append(input, byte(i))
	}
	for length, want := range map[int]uint64{0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 7: 0xab0200f58b01d137, 8: 0x93f5f5799a932462, 15: 0xa129ca6149be45e5, 63: 0x958a324ceb064572} {
		if got := k.Checksum(input[:length]); got != want {
			t.Errorf("%d bytes: %#x, want %#x", length, got, want)
		}
	}
}

// TestKeys: two keys with the same secret open each other's tokens and compute the same fingerprints, so tokens stay
// valid after a restart. A key with another secret does neither.
func TestKeys(t *testing.T) {
	before, after, other := NewKey([SecretSize]byte{1}), NewKey([SecretSize]byte{1}), NewKey([SecretSize]byte{2})
	sealed := before.Seal([]byte("token"), 0)
	if body, ok := after.Open(sealed); !ok || string(body) != "token" {
		t.Errorf("opened %q, %v", body, ok)
	}
	if _, ok := other.Open(sealed); ok {
		t.Error("another key opens it")
	}
	keys := &spannerpb.KeySet{All: true}
	sum := func(k Key) uint64 { return k.Read("session", "T", "", []string{"A", "B"}, keys).Sum }
	if sum(before) != sum(after) || sum(before) == sum(other) {
		t.Errorf("fingerprints %x, %x, %x", sum(before), sum(after), sum(other))
	}
}

func BenchmarkFingerprint(b *testing.B) {
	k := NewKey([SecretSize]byte{1})
	session := "projects/p/instances/i/databases/d/sessions/0123456789abcdef0123456789abcdef"
	columns := []string{"Id", "F0", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"}
	keys := &spannerpb.KeySet{All: true}
	for b.Loop() {
		k.Read(session, "T", "", columns, keys)
	}
}

func BenchmarkSeal(b *testing.B) {
	k := NewKey([SecretSize]byte{1})
	token := make([]byte, 20, 64)
	for b.Loop() {
		k.Seal(token, 0)
	}
}
