package utility

import (
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/value"
)

// TestCompression checks that a text that is compressed at any level has the same content after it is decompressed.
// The test does not compare compressed bytes, because they depend on the library's version.
func TestCompression(t *testing.T) {
	text := strings.Repeat("the same again, ", 1000)
	for level := int64(zstdMinLevel); level <= zstdMaxLevel; level++ {
		packed, err := zstdCompress(nil, []value.Value{value.OfString(text), value.OfInt64(level)})
		if err != nil {
			t.Fatal(err)
		}
		back, err := zstdToString(nil, []value.Value{packed})
		if err != nil || back.AsString() != text || len(packed.AsBytes()) > 200 {
			t.Errorf("level %d: %d bytes, %v", level, len(packed.AsBytes()), err)
		}
	}
}
