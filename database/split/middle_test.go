package split

import (
	"bytes"
	"testing"
)

// TestBoundsBesideRows: a bound between two keys is not inside the versions of a row: it never begins with a row's whole logical key and goes on.
func TestBoundsBesideRows(t *testing.T) {
	prefix := []byte{0, 0, 0, 1, 2}
	for n, want := range map[uint64][]byte{
		0x8103000000000000: {0, 0, 0, 1, 2, 0x81, 3, 0}, // the key of the row 3 itself
		0x8103005a00000000: {0, 0, 0, 1, 2, 0x81, 3, 0},
		0x8103040506070809: {0, 0, 0, 1, 2, 0x81, 3, 4, 5, 6, 7, 8, 9, 0},
		0:                  {0, 0, 0, 1, 2, 0},
	} {
		if got := keyOf(prefix, n); !bytes.Equal(got, want) {
			t.Errorf("%x is % x, want % x", n, got, want)
		}
	}
}
