package schema

import (
	"reflect"
	"slices"
	"time"
)

// ChangeStreamID numbers a change stream for life. The numbers are of the sequence that TableIDs are of.
type ChangeStreamID uint32

// ChangeStream records the changes of the tables and columns that it watches. It is immutable: a schema change that alters it makes another
// one with its number. Source: https://cloud.google.com/spanner/docs/change-streams.
type ChangeStream struct {
	ID   ChangeStreamID
	Name string // in the default schema
	// All says that it watches every column of every table, also of those to come (FOR ALL).
	All bool
	// Tables are what FOR names, in order. A stream that has none and is not All watches nothing.
	Tables []WatchedTable
	// Options are those that are set, as text by name. The fields below say what they mean; they hold the defaults of those that are not set.
	Options map[string]string

	Retention         time.Duration // how long records can be read
	ValueCapture      ValueCapture
	ExcludeInsert     bool // inserts are not recorded, and so on
	ExcludeUpdate     bool
	ExcludeDelete     bool
	ExcludeTTLDeletes bool // deletes by a row deletion policy are not recorded
	AllowTxnExclusion bool // transactions with exclude_txn_from_change_streams are not recorded
}

// WatchedTable is a table that a change stream names. The columns of its primary key are always watched.
type WatchedTable struct {
	Table TableID
	// Whole says that all columns are watched, also those to come (FOR t).
	Whole bool
	// Columns are those that are named (FOR t(a, b)). FOR t() has none.
	Columns []ColumnID
}

// ValueCapture says which values of a changed row a record has.
// Source: https://cloud.google.com/spanner/docs/change-streams#value-capture-type.
type ValueCapture uint8

const (
	OldAndNewValues    ValueCapture = iota // of the columns that have changed, before and after
	NewValues                              // of the columns that have changed, after
	NewRow                                 // of all watched columns, after
	NewRowAndOldValues                     // of all watched columns, after, and of those that have changed, before
)

var valueCaptureNames = []string{"OLD_AND_NEW_VALUES", "NEW_VALUES", "NEW_ROW", "NEW_ROW_AND_OLD_VALUES"}

// String is the name of the value capture type, as DDL and records have it.
func (v ValueCapture) String() string { return valueCaptureNames[v] }

// Watcher is a change stream that watches a table.
type Watcher struct {
	Stream *ChangeStream
	// Columns are those that it watches beside the primary key, in the table's order. Columns that are being back-filled are among them.
	Columns []*Column
}

// Watchers are the change streams that watch a table, in order of creation; nil if there are none.
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

// Watches says whether the stream watches a table.
func (s *ChangeStream) Watches(t *Table) bool {
	whole, named := s.watches(t)
	return whole || named != nil
}

// watches says whether the stream watches a whole table, or what it names of it; nil if nothing.
func (s *ChangeStream) watches(t *Table) (whole bool, named *WatchedTable) {
	for i := range s.Tables {
		if named = &s.Tables[i]; named.Table == t.ID {
			return named.Whole, named
		}
	}
	return s.All, nil
}

// watchable says whether a stream can watch the column beside the primary key: it has values of its own.
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

// sameWatchers says whether a table is watched in another catalog as it is in c: by the same streams, none of which was altered.
func (c *Catalog) sameWatchers(t *Table, o *Catalog) bool {
	others := func(s *ChangeStream) bool {
		whole, named := s.watches(t)
		return !whole && named == nil
	}
	before, after := slices.DeleteFunc(slices.Clone(c.Streams), others), slices.DeleteFunc(slices.Clone(o.Streams), others)
	return slices.EqualFunc(before, after, func(s, x *ChangeStream) bool { return s == x || reflect.DeepEqual(s, x) })
}
