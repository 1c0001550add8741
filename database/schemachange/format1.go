package schemachange

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
)

// SplitCatalogs rewrites the schema versions of a database from format 1 to format 2, in one batch. In format 1, a
// version is one record with all its tables. In format 2, each table has records of its own, and a version has records
// only for the tables that it has changed: see record.go.
func SplitCatalogs(store kv.Store, space mvcc.Space) error {
	b := meta.NewBatch(store)
	defer b.Close()
	var before map[schema.TableID][]byte
	err := meta.Each(store, meta.OfSpace(meta.Schema, space), func(name string, data []byte) error {
		var r struct {
			schemaRecord
			Catalog schema.Format1 // hides schemaRecord.Catalog
		}
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("read schema version: %w", err)
		}
		if r.Catalog.Format != 1 {
			return nil // an earlier run has rewritten this database
		}
		e, err := r.Catalog.Split()
		if err != nil {
			return err
		}
		if err := putObjects(b, space, r.Catalog.Version, changedTables(before, e.Objects)); err != nil {
			return err
		}
		before, r.schemaRecord.Catalog = e.Objects, e.Catalog
		return meta.Put(b, meta.Key(name), r.schemaRecord)
	})
	if err != nil {
		return err
	}
	return b.Commit()
}

// changedTables compares two sets of stored tables, and returns those tables in the parameter now that are missing or
// different in the parameter before. A table that is missing in the parameter now is nil in the result.
func changedTables(before, now map[schema.TableID][]byte) map[schema.TableID][]byte {
	changed := map[schema.TableID][]byte{}
	for id, data := range now {
		if !bytes.Equal(before[id], data) {
			changed[id] = data
		}
	}
	for id := range before {
		if now[id] == nil {
			changed[id] = nil
		}
	}
	return changed
}
