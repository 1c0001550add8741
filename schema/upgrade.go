package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Format1 is the JSON form in which format 1 stored a whole catalog for each schema version. A catalog of a later
// format can also be decoded into it; Format is then that format.
type Format1 struct {
	storedCatalog
	Tables []json.RawMessage `json:"tables"`
}

// Split makes the Encoding of a database's first version. If two versions define a table alike, its encodings are equal
// byte for byte.
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

// storedID returns the ID of an encoded table. It decodes only the first field, which is the ID: to decode thousands of
// versions with thousands of tables each would take minutes.
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
