package database

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// Schema versions are stored as versions of rows are: a record for each version, and one for each table and version that defined it
// anew. A table is, in a schema version, as the newest of its records says that is not younger.

// schemaRecord is a version as stored, without its tables.
type schemaRecord struct {
	At      mvcc.Timestamp
	Catalog json.RawMessage
	Garbage []table.Span
	// Tentative: see version.
	Tentative bool `json:",omitempty"`
	// Change: see version.by.
	Change *changeRecord `json:",omitempty"`
}

// storeVersion makes a version durable as it is published, with the tables that are not as in the version before, which is nil for the first
// version, and with it that a statement took effect, unless that is nil. commit commits the batch.
func (d *Database) storeVersion(v *version, before *schema.Catalog, p publication, commit func(kv.Batch) error) error {
	b := meta.NewBatch(d.registry.store)
	defer b.Close()
	return d.commitVersion(b, v, before, p, commit)
}

// commitVersion is storeVersion in a batch that holds more, which it commits.
func (d *Database) commitVersion(b kv.Batch, v *version, before *schema.Catalog, p publication, commit func(kv.Batch) error) error {
	e, err := v.catalog.Marshal(before)
	if err != nil {
		return err
	}
	if err := putObjects(b, d.space, v.catalog.Version, e.Objects); err != nil {
		return err
	}
	record := schemaRecord{At: v.at, Catalog: e.Catalog, Garbage: p.garbage, Tentative: p.underWay != nil}
	if p.underWay != nil {
		record.Change = v.by
	}
	if err := meta.Put(b, versionKey(d.space, v.catalog.Version), record); err != nil {
		return err
	}
	if p.statement != nil {
		if err := p.statement.applied(b, v.at); err != nil {
			return err
		}
	}
	if before != nil {
		if err := d.sequences.Restarted(b, v.catalog.Restarts(before)); err != nil {
			return err
		}
	}
	streams, err := d.updateStreams(b, v)
	if err != nil {
		return err
	}
	return streams.End(commit(b))
}

// putObjects adds the records of the tables, and other objects, that a version has changed.
func putObjects(b kv.Batch, space mvcc.Space, version schema.Version, objects map[schema.TableID][]byte) error {
	for _, id := range slices.Sorted(maps.Keys(objects)) {
		if err := b.Put(tableKey(space, id, version), objects[id]); err != nil {
			return err
		}
	}
	return nil
}

func versionKey(space mvcc.Space, version schema.Version) []byte {
	return meta.Key(meta.OfSpace(meta.Schema, space), fmt.Sprintf("%020d", version))
}

// tableKey orders the records of a database by table or other object, and those of one by version. The record of what a version has dropped
// is empty.
func tableKey(space mvcc.Space, id schema.TableID, version schema.Version) []byte {
	return meta.Key(meta.OfSpace(meta.Table, space), fmt.Sprintf("%010d/%020d", id, version))
}

// parseTableName reads the name of a table's record.
func parseTableName(name string) (schema.TableID, schema.Version, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 4 {
		return 0, 0, fmt.Errorf("record %q is not one of a table", name)
	}
	id, err := strconv.ParseUint(parts[2], 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("record %q is not one of a table: %w", name, err)
	}
	version, err := strconv.ParseUint(parts[3], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("record %q is not one of a table: %w", name, err)
	}
	return schema.TableID(id), schema.Version(version), nil
}

// loadVersions reads the schema versions of the database, oldest first.
func (d *Database) loadVersions() ([]*version, error) {
	records, numbers, err := d.schemaRecords()
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("database %s has no schema", d.name)
	}
	tables, err := d.tableRecords(numbers)
	if err != nil {
		return nil, err
	}
	list := make([]*version, len(records))
	var before *schema.Catalog
	for i, r := range records {
		e := &schema.Encoding{Catalog: r.Catalog, Objects: tables[numbers[i]]}
		c, err := schema.Unmarshal(before, e, compiler{context.Background(), d.registry.cfg.Clock, d.sequences})
		if err != nil {
			return nil, fmt.Errorf("read schema version %d: %w", numbers[i], err)
		}
		v := newVersion(d, c, r.At)
		v.garbage = r.Garbage
		v.by = r.Change
		v.tentative.Store(r.Tentative)
		list[i], before = v, c
	}
	return list, nil
}

func (d *Database) schemaRecords() (records []schemaRecord, numbers []schema.Version, err error) {
	prefix := meta.OfSpace(meta.Schema, d.space)
	err = meta.Each(d.registry.store, prefix, func(name string, data []byte) error {
		var r schemaRecord
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("read schema version: %w", err)
		}
		number, err := strconv.ParseUint(strings.TrimPrefix(name, prefix), 10, 64)
		if err != nil {
			return fmt.Errorf("read schema version: %w", err)
		}
		records, numbers = append(records, r), append(numbers, schema.Version(number))
		return nil
	})
	return records, numbers, err
}

// tableRecords are the tables that each kept version has changed, with what versions that are no longer kept have changed before it.
func (d *Database) tableRecords(kept []schema.Version) (map[schema.Version]map[schema.TableID][]byte, error) {
	tables := map[schema.Version]map[schema.TableID][]byte{}
	err := meta.Each(d.registry.store, meta.OfSpace(meta.Table, d.space), func(name string, data []byte) error {
		id, version, err := parseTableName(name)
		if err != nil {
			return err
		}
		at, _ := slices.BinarySearch(kept, version)
		if at == len(kept) {
			return fmt.Errorf("record %q is younger than the newest schema version", name)
		}
		version = kept[at]
		if tables[version] == nil {
			tables[version] = map[schema.TableID][]byte{}
		}
		if len(data) == 0 {
			data = nil
		}
		tables[version][id] = data
		return nil
	})
	return tables, err
}

// forgetVersions deletes the records of the versions before the oldest one that is kept, and those of tables that only they need.
func (d *Database) forgetVersions(b kv.Batch, oldest schema.Version) error {
	if err := b.DeleteRange(versionKey(d.space, 0), versionKey(d.space, oldest)); err != nil {
		return err
	}
	return d.forgetTables(b, oldest)
}

// forgetTables deletes the records of tables that only versions before the oldest one need.
func (d *Database) forgetTables(b kv.Batch, oldest schema.Version) error {
	var last []byte // a record that is not younger than the oldest version, needed by it unless the next one is such a record too
	var lastID schema.TableID
	return meta.Each(d.registry.store, meta.OfSpace(meta.Table, d.space), func(name string, data []byte) error {
		id, version, err := parseTableName(name)
		if err != nil || version > oldest {
			return err
		}
		if last != nil && lastID == id {
			if err := b.Delete(last); err != nil {
				return err
			}
		}
		last, lastID = meta.Key(name), id
		if len(data) == 0 {
			last = nil
			return b.Delete(meta.Key(name))
		}
		return nil
	})
}
