package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Format1 is a whole catalog as format 1 stored it for each schema version, as JSON. It can also be decoded from the catalog of a later
// format, and Format is then that format.
type Format1 struct {
	storedCatalog
	Tables []json.RawMessage `json:"tables"`
}

// Split makes the Encoding of a database's first version. The tables of two versions are equal byte for byte if they are defined alike.
func (c *Format1) Split() (*Encoding, error) {
	e := &Encoding{Objects: make(map[TableID][]byte, len(c.Tables))}
	for _, data := range c.Tables {
		id, err := storedID(data)
		if err != nil {
			return nil, fmt.Errorf("decode table of format 1: %w", err)
		}
		e.Objects[id] = data
	}
	now := c.storedCatalog
	now.Format = storageFormat
	var err error
	e.Catalog, err = json.Marshal(now)
	return e, err
}

// storedID is the number of an encoded table. It stands first: what follows is not decoded, as thousands of versions with thousands of
// tables each would take minutes.
func storedID(data []byte) (TableID, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil { // {
		return 0, err
	}
	key, err := d.Token()
	if err != nil {
		return 0, err
	}
	if key != "id" {
		return 0, fmt.Errorf("a table begins with %v, not with its id", key)
	}
	var id TableID
	return id, d.Decode(&id)
}
