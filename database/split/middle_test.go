package split

import (
	"bytes"
	"testing"
)

// TestBoundsBesideRows checks that keyOf never returns a key that lies between the versions of a row: no proper prefix
// of the key may be the complete logical key of a row.
func TestBoundsBesideRows(t *testing.T) {
	prefix := []byte{0, 0, 0, 1, 2}
	for n, want := range map[uint64][]byte{
		0x8103000000000000: {0, 0, 0, 1, 2, 0x81, 3, 0}, // the key of row 3 itself
		0x8103005a00000000: {0, 0, 0, 1, 2, 0x81, 3, 0},
		0x8103040506070809: {0, 0, 0, 1, 2, 0x81, 3, 4, 5, 6, 7, 8, 9, 0},
		0:                  {0, 0, 0, 1, 2, 0},
	} {
		if got := keyOf(prefix, n); !bytes.Equal(got, want) {
			t.Errorf("%x is % x, want % x", n, got, want)
		}
	}
}
