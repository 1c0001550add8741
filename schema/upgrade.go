package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// SplitFormat1 turns a whole catalog, which format 1 stored for each schema version, into the Encoding of a database's first version. The
// tables of two versions are equal byte for byte if they are defined alike.
func SplitFormat1(whole []byte) (*Encoding, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(whole, &fields); err != nil {
		return nil, fmt.Errorf("decode catalog of format 1: %w", err)
	}
	if string(fields["format"]) != "1" {
		return nil, fmt.Errorf("decode catalog of format 1: it is of format %s", fields["format"])
	}
	var tables []json.RawMessage
	if list := fields["tables"]; list != nil {
		if err := json.Unmarshal(list, &tables); err != nil {
			return nil, fmt.Errorf("decode tables of format 1: %w", err)
		}
	}
	e := &Encoding{Tables: make(map[TableID][]byte, len(tables))}
	for _, data := range tables {
		var t struct{ ID TableID }
		if err := json.Unmarshal(data, &t); err != nil {
			return nil, fmt.Errorf("decode table of format 1: %w", err)
		}
		e.Tables[t.ID] = data
	}
	delete(fields, "tables")
	fields["format"] = json.RawMessage(strconv.Itoa(storageFormat))
	var err error
	e.Catalog, err = json.Marshal(fields)
	return e, err
}
