package schemachange

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// The store keeps schema versions like versions of rows. It has one record for each schema version. For each table it
// has a record for each version that changed the table. For each table, a schema version uses the newest record that is
// not younger than the version itself.

// schemaRecord is a schema version as stored, without its tables.
type schemaRecord struct {
	At      mvcc.Timestamp
	Catalog json.RawMessage
	Garbage []table.Span
	// Tentative says that the schema change which made the version has not ended.
	Tentative bool `json:",omitempty"`
	// Change is the statement that made the version, if an operation will resume it after a restart; nil otherwise.
	Change *changeRecord `json:",omitempty"`
}

// storeVersion stores version v durably when it is published. It stores the tables in which v differs from the catalog
// that the parameter before holds. For the first version, that parameter is nil. If p.statement is not nil, the same
// batch records that this statement took effect. storeVersion calls the function commit to commit the batch.
func (m *Manager) storeVersion(v *Version, before *schema.Catalog, p publication, commit func(kv.Batch) error) error {
	b := meta.NewBatch(m.cfg.Store)
	defer b.Close()
	return m.commitVersion(b, v, before, p, commit)
}

// commitVersion adds to batch b what storeVersion stores, and commits all of b.
func (m *Manager) commitVersion(b kv.Batch, v *Version, before *schema.Catalog, p publication, commit func(kv.Batch) error) error {
	e, err := v.Catalog.Marshal(before)
	if err != nil {
		return err
	}
	if err := putObjects(b, m.cfg.Space, v.Catalog.Version, e.Objects); err != nil {
		return err
	}
	record := schemaRecord{At: v.At, Catalog: e.Catalog, Garbage: p.garbage, Tentative: p.underWay != nil}
	if p.underWay != nil {
		record.Change = v.by
	}
	if err := meta.Put(b, versionKey(m.cfg.Space, v.Catalog.Version), record); err != nil {
		return err
	}
	if p.statement != nil {
		if err := p.statement.applied(b, v.At); err != nil {
			return err
		}
	}
	if before != nil {
		if err := m.cfg.Sequences.Restarted(b, v.Catalog.Restarts(before)); err != nil {
			return err
		}
	}
	// The first version has timestamp 0, but its change streams begin when the database is created.
	at := max(v.At, mvcc.TimestampOf(m.cfg.Created))
	streams, err := m.cfg.Streams.Change(b, v.Catalog.Streams, at, func(s *schema.ChangeStream) [][]byte { return m.cfg.Bounds(v.Catalog, s) })
	if err != nil {
		return err
	}
	return streams.End(commit(b))
}

// putObjects adds to b the records of the tables and other objects that a version has changed.
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

// tableKey returns the key of the record of a table, or of another object, in a version. The keys sort by object, then
// by version. If the version has dropped the object, the record is empty.
func tableKey(space mvcc.Space, id schema.TableID, version schema.Version) []byte {
	return meta.Key(meta.OfSpace(meta.Table, space), fmt.Sprintf("%010d/%020d", id, version))
}

// parseTableName returns the table and the version that the name of a table's record contains.
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
func (m *Manager) loadVersions() ([]*Version, error) {
	records, numbers, err := m.schemaRecords()
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("database %s has no schema", m.cfg.Name)
	}
	tables, err := m.tableRecords(numbers)
	if err != nil {
		return nil, err
	}
	list := make([]*Version, len(records))
	var before *schema.Catalog
	for i, r := range records {
		e := &schema.Encoding{Catalog: r.Catalog, Objects: tables[numbers[i]]}
		c, err := schema.Unmarshal(before, e, prepare.NewCompiler(context.Background(), m.cfg.Clock, m.cfg.Sequences))
		if err != nil {
			return nil, fmt.Errorf("read schema version %d: %w", numbers[i], err)
		}
		v := m.newVersion(c, r.At)
		v.Garbage = r.Garbage
		v.by = r.Change
		v.tentative.Store(r.Tentative)
		list[i], before = v, c
	}
	return list, nil
}

func (m *Manager) schemaRecords() (records []schemaRecord, numbers []schema.Version, err error) {
	prefix := meta.OfSpace(meta.Schema, m.cfg.Space)
	err = meta.Each(m.cfg.Store, prefix, func(name string, data []byte) error {
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

// tableRecords returns, for each kept version, the stored tables that have changed since the preceding kept version. If
// a version that is no longer kept has changed a table, the change counts for the next kept version. A dropped table is
// nil.
func (m *Manager) tableRecords(kept []schema.Version) (map[schema.Version]map[schema.TableID][]byte, error) {
	tables := map[schema.Version]map[schema.TableID][]byte{}
	err := meta.Each(m.cfg.Store, meta.OfSpace(meta.Table, m.cfg.Space), func(name string, data []byte) error {
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

// forgetVersions adds to b the deletion of the records of all versions before oldest, the oldest version that is kept.
// It also deletes the records of tables that only these versions use.
func (m *Manager) forgetVersions(b kv.Batch, oldest schema.Version) error {
	if err := b.DeleteRange(versionKey(m.cfg.Space, 0), versionKey(m.cfg.Space, oldest)); err != nil {
		return err
	}
	return m.forgetTables(b, oldest)
}

// forgetTables adds to b the deletion of the records of tables that are used only by versions before oldest, the oldest
// version that is kept.
func (m *Manager) forgetTables(b kv.Batch, oldest schema.Version) error {
	var last []byte // key of the previous record, which is deleted if the next record is of the same table
	var lastID schema.TableID
	return meta.Each(m.cfg.Store, meta.OfSpace(meta.Table, m.cfg.Space), func(name string, data []byte) error {
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
