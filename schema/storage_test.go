package schema

import (
	"bytes"
	"maps"
	"strings"
	"testing"
)

// TestUnmarshalDamaged reads encodings with one digit changed or cut short: some are refused, none panics.
func TestUnmarshalDamaged(t *testing.T) {
	whole := encoded(t, nil, fuzzCatalog(t))
	refused := 0
	for id, data := range whole.Tables {
		read := func(damaged []byte) error {
			e := &Encoding{Catalog: whole.Catalog, Tables: maps.Clone(whole.Tables)}
			e.Tables[id] = damaged
			_, err := Unmarshal(nil, e, wordCompiler{})
			return err
		}
		for i, c := range data {
			if c < '0' || c > '9' {
				continue
			}
			damaged := bytes.Clone(data)
			damaged[i] = '9'
			if read(damaged) != nil {
				refused++
			}
		}
		for n := range data {
			if read(data[:n]) == nil {
				t.Errorf("the first %d of %d bytes are accepted", n, len(data))
			}
		}
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
}

func TestUnmarshalNewerFormat(t *testing.T) {
	_, err := Unmarshal(nil, &Encoding{Catalog: []byte(`{"format":3,"next_id":1}`)}, wordCompiler{})
	if err == nil || !strings.Contains(err.Error(), "unknown format 3") {
		t.Errorf("got %v", err)
	}
}
