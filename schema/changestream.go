package schema

import (
	"reflect"
	"slices"
	"time"
)

// ChangeStreamID identifies a change stream. It never changes. The IDs are from the same sequence as TableIDs.
type ChangeStreamID uint32

// ChangeStream records the changes of the tables and columns that it watches. It is immutable: a schema change that
// alters it makes a new one with the same ID. Source: https://cloud.google.com/spanner/docs/change-streams.
type ChangeStream struct {
	ID   ChangeStreamID
	Name string // in the default schema
	// All says that the stream watches every column of every table, including those that are added later (FOR ALL).
	All bool
	// Tables lists the tables that FOR names, in order. A stream without tables that is not All watches nothing.
	Tables []WatchedTable
	// Options holds the values of the options that are set, as text by name. The fields below hold the effective values
	// of all options.
	Options map[string]string

	Retention         time.Duration // how long records can be read
	ValueCapture      ValueCapture
	ExcludeInsert     bool // the stream does not record inserts; likewise for the next two
	ExcludeUpdate     bool
	ExcludeDelete     bool
	ExcludeTTLDeletes bool // the stream does not record deletes by a row deletion policy
	AllowTxnExclusion bool // the stream does not record transactions with exclude_txn_from_change_streams
}

// WatchedTable is a table that a change stream names. The stream always watches the columns of its primary key.
type WatchedTable struct {
	Table TableID
	// Whole says that the stream watches all columns, including those that are added later (FOR t).
	Whole bool
	// Columns lists the columns that FOR t(a, b) names. It is empty for FOR t().
	Columns []ColumnID
}

// ValueCapture says which values of a changed row a record holds. Source:
// https://cloud.google.com/spanner/docs/change-streams#value-capture-type.
type ValueCapture uint8

const (
	OldAndNewValues    ValueCapture = iota // old and new values of the changed columns
	NewValues                              // new values of the changed columns
	NewRow                                 // new values of all watched columns
	NewRowAndOldValues                     // new values of all watched columns, and old values of the changed ones
)

var valueCaptureNames = []string{"OLD_AND_NEW_VALUES", "NEW_VALUES", "NEW_ROW", "NEW_ROW_AND_OLD_VALUES"}

// String returns the name of the value capture type in DDL and records.
func (v ValueCapture) String() string { return valueCaptureNames[v] }

// Watcher is a change stream that watches a given table.
type Watcher struct {
	Stream *ChangeStream
	// Columns lists the columns that it watches in addition to the primary key, in the table's order. It includes
	// columns that are being back-filled.
	Columns []*Column
}

// Watchers returns the change streams that watch a table, in order of creation; nil if there are none.
func (c *Catalog) Watchers(t *Table) (list []Watcher) {
	for _, s := range c.Streams {
		whole, named := s.watches(t)
		if !whole && named == nil {
			continue
		}
		w := Watcher{Stream: s}
		for _, col := range t.Columns {
			if col.watchable() && (whole || slices.Contains(named.Columns, col.ID)) {
				w.Columns = append(w.Columns, col)
			}
		}
		list = append(list, w)
	}
	return list
}

// Watches reports whether the stream watches a table.
func (s *ChangeStream) Watches(t *Table) bool {
	whole, named := s.watches(t)
	return whole || named != nil
}

// watches reports whether the stream watches a whole table. Otherwise it returns what the stream names of the table;
// nil if nothing.
func (s *ChangeStream) watches(t *Table) (whole bool, named *WatchedTable) {
	for i := range s.Tables {
		if named = &s.Tables[i]; named.Table == t.ID {
			return named.Whole, named
		}
	}
	return s.All, nil
}

// watchable reports whether a stream can watch the column in addition to the primary key: its values are not computed.
func (c *Column) watchable() bool {
	return c.KeyOrdinal < 0 && (c.Generated == nil || c.Stored)
}

// ChangeStream returns the change stream called name, ignoring case, or nil.
func (c *Catalog) ChangeStream(name string) *ChangeStream {
	for _, s := range c.Streams {
		if sameName(s.Name, name) {
			return s
		}
	}
	return nil
}

// sameWatchers reports whether the same change streams watch a table in another catalog as in c, and none of them was
// altered.
func (c *Catalog) sameWatchers(t *Table, o *Catalog) bool {
	others := func(s *ChangeStream) bool {
		whole, named := s.watches(t)
		return !whole && named == nil
	}
	before, after := slices.DeleteFunc(slices.Clone(c.Streams), others), slices.DeleteFunc(slices.Clone(o.Streams), others)
	return slices.EqualFunc(before, after, func(s, x *ChangeStream) bool { return s == x || reflect.DeepEqual(s, x) })
}
