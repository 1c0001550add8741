package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// ChangeStreamID identifies a change stream. It never changes. Change streams, tables and indexes take their IDs from
// one sequence.
type ChangeStreamID uint32

// ChangeStream records the changes of the tables and columns that it watches. A ChangeStream is immutable: a schema
// change that alters it makes a new one with the same ID. Source:
// https://cloud.google.com/spanner/docs/change-streams.
type ChangeStream struct {
	ID   ChangeStreamID
	Name string // in the default schema
	// All says that the stream watches every column of every table, including those that are added later (FOR ALL).
	All bool
	// Tables lists the tables that FOR names, in order. If Tables is empty and All is false, the stream watches
	// nothing.
	Tables []WatchedTable
	// Options holds the options that statements have set: it maps the name of an option to its value as text. The
	// fields below hold the effective values of all options, whether they are set or not.
	Options map[string]string

	Retention         time.Duration // how long records can be read
	ValueCapture      ValueCapture
	ExcludeInsert     bool // the stream does not record inserts
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
	// Columns lists the watched columns that are not in the primary key, in the table's order. It includes columns
	// that are being back-filled.
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

// watches reports whether the stream watches the whole table t. named is the entry of s.Tables for t; nil if FOR does
// not name t.
func (s *ChangeStream) watches(t *Table) (whole bool, named *WatchedTable) {
	for i := range s.Tables {
		if named = &s.Tables[i]; named.Table == t.ID {
			return named.Whole, named
		}
	}
	return s.All, nil
}

// watchable reports whether a stream can watch the column in addition to the primary key. The column must not be in
// the primary key, and its values must be stored.
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

// sameWatchers reports whether the same change streams, unaltered, watch table t in the catalogs c and o.
func (c *Catalog) sameWatchers(t *Table, o *Catalog) bool {
	others := func(s *ChangeStream) bool {
		whole, named := s.watches(t)
		return !whole && named == nil
	}
	before, after := slices.DeleteFunc(slices.Clone(c.Streams), others), slices.DeleteFunc(slices.Clone(o.Streams), others)
	return slices.EqualFunc(before, after, func(s, x *ChangeStream) bool { return s == x || reflect.DeepEqual(s, x) })
}

func (d *draft) createChangeStream(s *ast.CreateChangeStream) error {
	name := strings.Clone(s.Name.Name)
	if d.src.IfExists && d.ChangeStream(name) != nil {
		return d.nothing()
	}
	if err := checkName("Change Stream", name); err != nil {
		return err
	}
	if len(name) > maxChangeStreamName {
		return usererror.InvalidSchemaName("Change Stream", name)
	}
	if err := d.checkFree("", name); err != nil {
		return err
	}
	if len(d.Streams) >= MaxChangeStreams {
		return usererror.TooManyChangeStreams(name, MaxChangeStreams)
	}
	made := &ChangeStream{Name: name}
	if err := d.setOptions(made, s.Options); err != nil {
		return err
	}
	if err := d.watch(made, s.For); err != nil {
		return err
	}
	made.ID = ChangeStreamID(d.newID())
	d.Streams = append(slices.Clip(d.Streams), made)
	d.enterChangeStream(made)
	return d.checkWatchers(made)
}

func (d *draft) alterChangeStream(s *ast.AlterChangeStream) error {
	old, err := d.changeStream(s.Name)
	if err != nil {
		return err
	}
	altered := *old
	switch a := s.ChangeStreamAlteration.(type) {
	case *ast.ChangeStreamSetFor:
		err = d.watch(&altered, a.For)
	case *ast.ChangeStreamDropForAll:
		if !old.All && old.Tables == nil {
			return usererror.NothingWatched(old.Name)
		}
		altered.All, altered.Tables = false, nil
	case *ast.ChangeStreamSetOptions:
		err = d.setOptions(&altered, a.Options)
	default: // ALTER CHANGE STREAM s SET
		return d.src.ErrorAt(len(d.src.Text), "Expecting 'FOR' or 'OPTIONS' but found the end of the statement")
	}
	if err != nil {
		return err
	}
	d.Streams = slices.Clone(d.Streams)
	d.Streams[slices.Index(d.Streams, old)] = &altered
	return d.checkWatchers(&altered)
}

func (d *draft) dropChangeStream(s *ast.DropChangeStream) error {
	old, err := d.changeStream(s.Name)
	if err != nil {
		if d.src.IfExists && isMissing(err) {
			return d.nothing()
		}
		return err
	}
	d.Streams = slices.DeleteFunc(slices.Clone(d.Streams), func(o *ChangeStream) bool { return o == old })
	d.names = d.names.Without(key("", old.Name))
	return nil
}

// changeStream returns the change stream that the statement names.
func (d *draft) changeStream(name *ast.Ident) (*ChangeStream, error) {
	if s := d.ChangeStream(name.Name); s != nil {
		return s, nil
	}
	return nil, usererror.SchemaObjectNotFound("Change Stream", name.Name)
}

// enterChangeStream registers a change stream under its name.
func (d *draft) enterChangeStream(s *ChangeStream) {
	d.names = d.names.With(key("", s.Name), named{TableID(s.ID), nameOfChangeStream})
}

// watch sets the tables and columns that a stream watches. clause is its FOR clause, or nil.
func (d *draft) watch(s *ChangeStream, clause ast.ChangeStreamFor) error {
	s.All, s.Tables = false, nil
	switch f := clause.(type) {
	case *ast.ChangeStreamForAll:
		s.All = true
	case *ast.ChangeStreamForTables:
		for _, listed := range f.Tables {
			w, err := d.watchedTable(s.Name, listed)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(s.Tables, func(o WatchedTable) bool { return o.Table == w.Table }) {
				return usererror.WatchedTwice(s.Name, d.TableByID(w.Table).FullName())
			}
			s.Tables = append(s.Tables, w)
		}
	}
	return nil
}

func (d *draft) watchedTable(stream string, listed *ast.ChangeStreamForTable) (w WatchedTable, err error) {
	t := d.Table(listed.TableName.Name)
	if t == nil {
		return w, usererror.WatchedTableNotFound(stream, listed.TableName.Name)
	}
	w = WatchedTable{Table: t.ID, Whole: listed.Rparen.Invalid()}
	for _, name := range listed.Columns {
		c := t.Column(name.Name)
		switch {
		case c == nil:
			return w, usererror.WatchedColumnNotFound(stream, t.FullName(), name.Name)
		case c.KeyOrdinal >= 0:
			return w, usererror.WatchedKeyColumn(stream, t.FullName(), c.Name)
		case !c.watchable():
			return w, usererror.WatchedGeneratedColumn(stream, t.FullName()+"."+c.Name)
		case slices.Contains(w.Columns, c.ID):
			return w, usererror.WatchedColumnTwice(stream, t.FullName(), c.Name)
		}
		w.Columns = append(w.Columns, c.ID)
	}
	return w, nil
}

// checkWatchers returns an error if, after s was created or altered, too many streams watch the same table or column.
// A stream that watches a whole table counts for each of the table's columns.
func (d *draft) checkWatchers(s *ChangeStream) error {
	all := 0
	for _, o := range d.Streams {
		if o.All {
			all++
		}
	}
	if s.All && all > maxWatchers {
		return usererror.TooManyWatchers(s.Name, maxWatchers, "ALL")
	}
	if s.All {
		for t := range d.Tables() {
			if err := d.checkWatchersOf(s, t, true, nil); err != nil {
				return err
			}
		}
	}
	for _, w := range s.Tables {
		if err := d.checkWatchersOf(s, d.TableByID(w.Table), w.Whole, w.Columns); err != nil {
			return err
		}
	}
	return nil
}

// checkWatchersOf returns an error if too many streams watch table t or one of its columns. It checks only what the
// stream s watches: the whole table if whole is true, else the columns with the given IDs.
func (d *draft) checkWatchersOf(s *ChangeStream, t *Table, whole bool, columns []ColumnID) error {
	wholes := 0
	byColumn := map[ColumnID]int{}
	for _, o := range d.Streams {
		all, named := o.watches(t)
		if all {
			wholes++
		} else if named != nil {
			for _, id := range named.Columns {
				byColumn[id]++
			}
		}
	}
	if whole && wholes > maxWatchers {
		return usererror.TooManyWatchers(s.Name, maxWatchers, t.FullName())
	}
	for _, c := range t.Columns {
		if n := byColumn[c.ID]; n > 0 && n+wholes > maxWatchers && (whole || slices.Contains(columns, c.ID)) {
			return usererror.TooManyWatchers(s.Name, maxWatchers, t.FullName()+"."+c.Name)
		}
	}
	return nil
}

// changeStreamOption is one option of change streams.
type changeStreamOption struct {
	name string
	typ  string // the type of its values: textOption or boolOption
	want string // a description of the permitted values
	// set stores the option's value in the field of s for this option. The parameter text is the value as text; "" means
	// the default. set returns false if the value is not permitted.
	set func(s *ChangeStream, text string) bool
}

// changeStreamOptions lists all options, in the order in which an error names them.
var changeStreamOptions = []changeStreamOption{
	{"retention_period", textOption, "Change Streams retention period must be a value in the range [1d, 30d], such as '36h'", setRetention},
	{"value_capture_type", textOption, "Change Streams support the value capture types " + strings.Join(valueCaptureNames, ", "), setValueCapture},
	{"exclude_ttl_deletes", boolOption, mustBeBool, flag(func(s *ChangeStream) *bool { return &s.ExcludeTTLDeletes })},
	{"exclude_insert", boolOption, mustBeBool, flag(func(s *ChangeStream) *bool { return &s.ExcludeInsert })},
	{"exclude_update", boolOption, mustBeBool, flag(func(s *ChangeStream) *bool { return &s.ExcludeUpdate })},
	{"exclude_delete", boolOption, mustBeBool, flag(func(s *ChangeStream) *bool { return &s.ExcludeDelete })},
	{"allow_txn_exclusion", boolOption, mustBeBool, flag(func(s *ChangeStream) *bool { return &s.AllowTxnExclusion })},
	{"partition_mode", textOption, "Change Streams support the partition mode " + immutableKeyRange, setPartitionMode},
}

const (
	mustBeBool        = "The value must be true, false or null"
	immutableKeyRange = "IMMUTABLE_KEY_RANGE"
	mutableKeyRange   = "MUTABLE_KEY_RANGE"
)

// ChangeStreamOptionType returns the type of an option's values as DDL writes it: STRING(MAX) or BOOL.
func ChangeStreamOptionType(name string) string {
	for _, o := range changeStreamOptions {
		if o.name == name {
			return o.typ
		}
	}
	return ""
}

// setOptions sets the options that clause names, and leaves all others as they are. clause may be nil.
func (d *draft) setOptions(s *ChangeStream, clause *ast.Options) error {
	s.Options = maps.Clone(s.Options)
	if clause != nil {
		for _, r := range clause.Records {
			if err := setChangeStreamOption(s, r); err != nil {
				return err
			}
		}
	}
	if len(s.Options) == 0 {
		s.Options = nil
	}
	s.obeyOptions()
	return nil
}

func setChangeStreamOption(s *ChangeStream, r *ast.OptionsDef) error {
	name := strings.ToLower(r.Name.Name)
	at := slices.IndexFunc(changeStreamOptions, func(o changeStreamOption) bool { return o.name == name })
	if at < 0 {
		var names []string
		for _, o := range changeStreamOptions {
			names = append(names, o.name)
		}
		return usererror.UnknownChangeStreamOption(r.Name.Name, strings.Join(names, ", "))
	}
	o := changeStreamOptions[at]
	if _, null := r.Value.(*ast.NullLiteral); null {
		delete(s.Options, name)
		return nil
	}
	text, ok := optionText(r.Value, o.typ)
	if o.name == "partition_mode" && text == mutableKeyRange {
		return usererror.DDLUnimplemented("The partition mode " + mutableKeyRange)
	}
	if !ok || text == "" || !o.set(new(ChangeStream), text) {
		return usererror.BadChangeStreamOption(name, valueText(r.Value), o.want)
	}
	if s.Options == nil {
		s.Options = map[string]string{}
	}
	s.Options[name] = strings.Clone(text)
	return nil
}

// valueText returns an option's value as an error shows it.
func valueText(e ast.Expr) string {
	if s, ok := e.(*ast.StringLiteral); ok {
		return s.Value
	}
	return e.SQL()
}

// obeyOptions sets the fields of the stream that hold the effective values of its options.
func (s *ChangeStream) obeyOptions() {
	for _, o := range changeStreamOptions {
		o.set(s, s.Options[o.name])
	}
}

func setRetention(s *ChangeStream, text string) bool {
	if text == "" {
		text = defaultStreamRetention
	}
	d, ok := parseRetention(text)
	s.Retention = d
	return ok && d >= minStreamRetentionDays*24*time.Hour && d <= maxStreamRetentionDays*24*time.Hour
}

func setValueCapture(s *ChangeStream, text string) bool {
	if text == "" {
		text = OldAndNewValues.String()
	}
	at := slices.Index(valueCaptureNames, text)
	s.ValueCapture = ValueCapture(max(at, 0))
	return at >= 0
}

func setPartitionMode(_ *ChangeStream, text string) bool {
	return text == "" || text == immutableKeyRange
}

// flag returns the set function of a boolean option whose default is false. Its argument is a function that returns a
// pointer to the field that holds the option's value.
func flag(of func(*ChangeStream) *bool) func(*ChangeStream, string) bool {
	return func(s *ChangeStream, text string) bool {
		*of(s) = text == "true"
		return true
	}
}
