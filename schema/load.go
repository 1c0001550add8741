package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/crowfoot-db/crowfoot/schema/immutable"
	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/value"
)

// errDangling is the error for an encoded catalog in which an object refers to another one that is missing.
var errDangling = errors.New("reference to a missing object")

// Unmarshal decodes a catalog that Marshal has encoded as its differences from before. before is the previous version
// of the catalog, or nil for the first version. Expressions are compiled when they are first evaluated.
func Unmarshal(before *Catalog, e *Encoding, compiler Compiler) (*Catalog, error) {
	var s storedCatalog
	if err := json.Unmarshal(e.Catalog, &s); err != nil {
		return nil, fmt.Errorf("decode catalog: %w", err)
	}
	if s.Format != storageFormat {
		return nil, fmt.Errorf("decode catalog: unknown format %d, this program knows %d", s.Format, storageFormat)
	}
	if before == nil {
		before = NewCatalog()
	}
	l := loader{before.draft(nil, compiler)}
	l.Database, l.Version, l.NextID, l.Schemas, l.Options = s.Database, s.Version, s.NextID, s.Schemas, s.Options
	tables, err := l.loadObjects(e.Objects)
	if err != nil {
		return nil, fmt.Errorf("decode catalog: %w", err)
	}
	if err := l.load(tables); err != nil {
		return nil, fmt.Errorf("decode catalog: %w", err)
	}
	if err := l.loadChangeStreams(s.ChangeStreams); err != nil {
		return nil, fmt.Errorf("decode catalog: %w", err)
	}
	l.measure()
	return l.Catalog, nil
}

// loader builds a catalog, as a draft, from its encoding.
type loader struct{ *draft }

// loading is a table that is being decoded, with its encoding.
type loading struct {
	*Table
	stored storedTable
	before *Table // the table in the previous version of the catalog, or nil
}

// load decodes the tables in encoded, which are those that differ from the previous version. It makes all of these
// tables first, and then resolves the references between them. encoded maps the ID of each table to its encoding, or to
// nil if the table was dropped.
func (l *loader) load(encoded map[TableID][]byte) error {
	var list []loading
	var dropped []*Table
	for _, id := range slices.Sorted(maps.Keys(encoded)) {
		before := l.TableByID(id)
		if before != nil {
			l.leave(before)
		}
		if encoded[id] == nil {
			if before != nil {
				dropped = append(dropped, before)
			}
			continue
		}
		t := loading{before: before}
		if err := json.Unmarshal(encoded[id], &t.stored); err != nil {
			return err
		}
		if t.stored.ID != id {
			return fmt.Errorf("table %d is stored as %d", t.stored.ID, id)
		}
		var err error
		if t.Table, err = l.loadTable(t.stored); err != nil {
			return fmt.Errorf("table %s: %w", t.stored.Name, err)
		}
		l.adopt(t.Table)
		l.renamed = l.renamed || before != nil && before.Name != t.Name
		list = append(list, t)
	}
	for _, resolve := range []func(loading) error{l.loadParent, l.loadIndexes, l.loadForeignKeys, l.loadExpressions} {
		for _, t := range list {
			if err := resolve(t); err != nil {
				return fmt.Errorf("table %s: %w", t.stored.Name, err)
			}
		}
	}
	for _, t := range list {
		l.enter(t.Table)
	}
	for _, t := range dropped {
		if referrers := slices.Collect(l.referrersOf(t)); len(referrers) > 0 {
			return fmt.Errorf("table %s refers to table %s, which was dropped: %w", referrers[0].FullName(), t.FullName(), errDangling)
		}
	}
	l.renewCallers(encoded)
	return l.relinkAll(list)
}

// relinkAll makes unchanged tables point at the new versions of the tables to which they refer. It returns an error
// if a new version lacks a column to which an unchanged table refers.
func (l *loader) relinkAll(list []loading) error {
	for _, t := range list {
		if t.before != nil {
			l.relink(t.Table)
		}
	}
	var err error
	immutable.Differences(l.old.tables, l.tables, func(_ TableID, _, t *Table) {
		if t != nil && !t.resolved() {
			err = fmt.Errorf("table %s: %w", t.FullName(), errDangling)
		}
	})
	return err
}

// resolved reports whether all references of a table lead to existing tables and columns.
func (t *Table) resolved() bool {
	return (t.Parent != nil) == (t.Interleave != NotInterleaved) && !slices.ContainsFunc(t.ForeignKeys, func(fk *ForeignKey) bool {
		return fk.Referenced == nil || slices.Contains(fk.ReferencedColumns, nil)
	})
}

// loadTable makes a table from its encoding, without its references to other tables and without its expressions.
func (l *loader) loadTable(s storedTable) (*Table, error) {
	t := &Table{ID: s.ID, Schema: s.Schema, Name: s.Name, NextColumn: s.NextColumn, ColumnarPolicy: s.Columnar, LocalityGroup: s.Locality, Synonym: s.Synonym}
	if s.ProtoBundle != 0 {
		t.ProtoBundle = l.ProtoBundle()
	}
	t.Columns = make([]*Column, len(s.Columns))
	for i, sc := range s.Columns {
		c, err := loadColumn(sc, t.ProtoBundle)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", sc.Name, err)
		}
		c.Ordinal = i
		t.Columns[i] = c
	}
	var err error
	if t.Key, err = t.loadKey(s.Key); err != nil {
		return nil, err
	}
	for i, p := range t.Key {
		p.Column.KeyOrdinal = i
	}
	if p := s.RowDeletion; p != nil {
		c, err := t.byID(p.Column)
		if err != nil {
			return nil, err
		}
		t.RowDeletionPolicy = &RowDeletionPolicy{Column: c, Days: p.Days}
	}
	for how, name := range interleaveNames {
		if name == s.Interleave {
			t.Interleave = how
		}
	}
	return t, nil
}

// loadParent sets the parent of a table. The parent must have a lower ID than the table, because parents are created
// before their children.
func (l *loader) loadParent(t loading) error {
	if t.stored.Parent == 0 {
		return nil
	}
	if t.Parent = l.TableByID(t.stored.Parent); t.Parent == nil || t.Parent.ID >= t.ID {
		return errDangling
	}
	return nil
}

func loadColumn(s storedColumn, bundle *ProtoBundle) (*Column, error) {
	c := &Column{
		ID: s.ID, Name: shared(s.Name), MaxLength: s.Length, LengthIsMax: s.Max, VectorLength: s.VectorLength, NotNull: s.NotNull, Hidden: s.Hidden,
		AllowCommitTimestamp: s.CommitTimestamp, LocalityGroup: s.Locality, PlacementKey: s.PlacementKey, Stored: s.Stored, KeyOrdinal: -1,
	}
	if s.WriteOnly {
		c.State = ColumnWriteOnly
	}
	switch kind := value.Kind(s.Kind); kind {
	case value.String:
		c.Type = value.StringType
	case value.Bytes:
		c.Type = value.BytesType
	case value.Proto, value.Enum:
		c.Type = bundle.Type(s.TypeName)
	default:
		c.Type = syntax.ScalarTypes[kind.String()]
	}
	if c.Type == nil || int(c.Type.Kind) != s.Kind {
		return nil, fmt.Errorf("unknown type %d", s.Kind)
	}
	if s.Array {
		c.Type = value.ArrayOf(c.Type)
	}
	return c, nil
}

// loadChangeStreams decodes all change streams of a version. If a stream equals that of the previous version, both
// versions share one ChangeStream.
func (l *loader) loadChangeStreams(stored []storedChangeStream) error {
	for _, old := range l.old.Streams {
		l.names = l.names.Without(key("", old.Name))
	}
	l.Streams = nil
	for _, s := range stored {
		loaded, err := l.loadChangeStream(s)
		if err != nil {
			return fmt.Errorf("change stream %s: %w", s.Name, err)
		}
		for _, old := range l.old.Streams {
			if reflect.DeepEqual(old, loaded) {
				loaded = old
			}
		}
		l.Streams = append(l.Streams, loaded)
		l.enterChangeStream(loaded)
	}
	return nil
}

func (l *loader) loadChangeStream(stored storedChangeStream) (*ChangeStream, error) {
	s := &ChangeStream{ID: stored.ID, Name: stored.Name, All: stored.All, Options: stored.Options}
	for _, w := range stored.Tables {
		t := l.TableByID(w.Table)
		if t == nil {
			return nil, errDangling
		}
		if _, err := t.loadColumns(w.Columns); err != nil {
			return nil, err
		}
		s.Tables = append(s.Tables, WatchedTable(w))
	}
	s.obeyOptions()
	return s, nil
}

func (t *Table) byID(id ColumnID) (*Column, error) {
	if c := t.columnByID(id); c != nil {
		return c, nil
	}
	return nil, errDangling
}

func (t *Table) loadKey(stored []storedKeyPart) ([]KeyPart, error) {
	var key []KeyPart
	for _, s := range stored {
		c, err := t.byID(s.Column)
		if err != nil {
			return nil, err
		}
		key = append(key, KeyPart{Column: c, Desc: s.Desc})
	}
	return key, nil
}

func (t *Table) loadColumns(ids []ColumnID) ([]*Column, error) {
	var columns []*Column
	for _, id := range ids {
		c, err := t.byID(id)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return columns, nil
}

func (l *loader) loadIndexes(t loading) error {
	for _, s := range t.stored.Indexes {
		if err := l.loadIndex(t.Table, s); err != nil {
			return fmt.Errorf("index %s: %w", s.Name, err)
		}
	}
	return nil
}

func (l *loader) loadIndex(t *Table, s storedIndex) (err error) {
	i := &Index{
		ID: s.ID, Schema: s.Schema, Name: s.Name, Table: t, Unique: s.Unique, NullFiltered: s.NullFiltered, Managed: s.Managed,
		ColumnarPolicy: s.Columnar, LocalityGroup: s.Locality,
	}
	if s.WriteOnly {
		i.State = IndexWriteOnly
	}
	if s.ValidateUnique {
		i.State = IndexValidateUnique
	}
	if i.Key, err = t.loadKey(s.Key); err != nil {
		return err
	}
	if i.Storing, err = t.loadColumns(s.Storing); err != nil {
		return err
	}
	if i.NotNullColumns, err = t.loadColumns(s.NotNull); err != nil {
		return err
	}
	if err := i.complete(); err != nil {
		return err
	}
	if s.Parent != 0 {
		if i.Parent = l.TableByID(s.Parent); i.Parent == nil {
			return errDangling
		}
	}
	t.Indexes = append(t.Indexes, i)
	return nil
}

func (l *loader) loadForeignKeys(t loading) error {
	for _, s := range t.stored.ForeignKeys {
		if err := l.loadForeignKey(t.Table, s); err != nil {
			return fmt.Errorf("foreign key %s: %w", s.Name, err)
		}
	}
	return nil
}

func (l *loader) loadForeignKey(t *Table, s storedForeignKey) (err error) {
	fk := &ForeignKey{
		Name: s.Name, NameGenerated: s.Generated, Table: t, Referenced: l.TableByID(s.Referenced),
		Cascade: s.Cascade, NotEnforced: s.NotEnforced, Index: t.indexByID(s.Index),
	}
	if fk.Referenced == nil {
		return errDangling
	}
	fk.ReferencedIndex = fk.Referenced.indexByID(s.ReferencedIndex)
	if s.Index != 0 && fk.Index == nil || s.ReferencedIndex != 0 && fk.ReferencedIndex == nil {
		return errDangling
	}
	if fk.Columns, err = t.loadColumns(s.Columns); err != nil {
		return err
	}
	if fk.ReferencedColumns, err = fk.Referenced.loadColumns(s.ReferencedColumns); err != nil {
		return err
	}
	t.ForeignKeys = append(t.ForeignKeys, fk)
	return nil
}
