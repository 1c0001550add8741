package schema

import (
	"bytes"
	"strings"
	"testing"
)

// TestUnmarshalDamaged reads encodings with one digit changed or cut short: some are refused, none panics.
func TestUnmarshalDamaged(t *testing.T) {
	data := stored(t, fuzzCatalog(t))
	refused := 0
	for i, c := range data {
		if c < '0' || c > '9' {
			continue
		}
		damaged := bytes.Clone(data)
		damaged[i] = '9'
		if _, err := Unmarshal(damaged, wordCompiler{}); err != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
	for n := range data {
		if _, err := Unmarshal(data[:n], wordCompiler{}); err == nil {
			t.Errorf("the first %d of %d bytes are accepted", n, len(data))
		}
	}
}

func TestUnmarshalNewerFormat(t *testing.T) {
	_, err := Unmarshal([]byte(`{"format":2,"next_id":1}`), wordCompiler{})
	if err == nil || !strings.Contains(err.Error(), "unknown format 2") {
		t.Errorf("got %v", err)
	}
}
