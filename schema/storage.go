package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/crowfoot-db/crowfoot/schema/immutable"
	"github.com/crowfoot-db/crowfoot/value"
)

// Encoding is the stored form of a catalog. It holds the differences of the catalog from the previous version.
type Encoding struct {
	Catalog []byte // everything except the tables and the objects
	// Objects maps IDs to the encodings of the tables and Objects that differ from the previous version. For the first
	// version it holds all tables and Objects. A nil encoding means that the table or Object was dropped.
	Objects map[TableID][]byte
}

// storageFormat is the format in which Marshal encodes catalogs. Unmarshal refuses any other format.
const storageFormat = 2

// storedCatalog is encoded as JSON into Encoding.Catalog. In it, and in the other stored types below, tables and
// objects refer to each other by ID. The kind of a column's type is a number of google.spanner.v1.TypeCode; these
// numbers never change. Expressions are stored as SQL text, and compiled again after they are loaded.
type storedCatalog struct {
	Format   int               `json:"format"`
	Database string            `json:"database,omitempty"`
	Version  Version           `json:"version"`
	NextID   TableID           `json:"next_id"`
	Schemas  []string          `json:"schemas,omitempty"`
	Options  map[string]string `json:"options,omitempty"`
	// ChangeStreams lists all change streams of the version, also those that have not changed since the previous
	// version.
	ChangeStreams []storedChangeStream `json:"change_streams,omitempty"`
}

type storedChangeStream struct {
	ID      ChangeStreamID       `json:"id"`
	Name    string               `json:"name"`
	All     bool                 `json:"all,omitempty"`
	Tables  []storedWatchedTable `json:"tables,omitempty"`
	Options map[string]string    `json:"options,omitempty"`
}

type storedWatchedTable struct {
	Table   TableID    `json:"table"`
	Whole   bool       `json:"whole,omitempty"`
	Columns []ColumnID `json:"columns,omitempty"`
}

type storedTable struct {
	ID          TableID            `json:"id"`
	Schema      string             `json:"schema,omitempty"`
	Name        string             `json:"name"`
	Columns     []storedColumn     `json:"columns,omitempty"`
	Key         []storedKeyPart    `json:"key,omitempty"`
	NextColumn  ColumnID           `json:"next_column"`
	Parent      TableID            `json:"parent,omitempty"`
	Interleave  string             `json:"interleave,omitempty"`
	Synonym     string             `json:"synonym,omitempty"`
	Checks      []storedCheck      `json:"checks,omitempty"`
	Indexes     []storedIndex      `json:"indexes,omitempty"`
	ForeignKeys []storedForeignKey `json:"foreign_keys,omitempty"`
	RowDeletion *storedRowDeletion `json:"row_deletion,omitempty"`
	Columnar    ColumnarPolicy     `json:"columnar_policy,omitempty"`
	Locality    string             `json:"locality_group,omitempty"`
	ProtoBundle int                `json:"proto_bundle,omitempty"` // the Revision of Table.ProtoBundle; 0 if it is nil
}

type storedRowDeletion struct {
	Column ColumnID `json:"column"`
	Days   int64    `json:"days"`
}

type storedColumn struct {
	ID              ColumnID   `json:"id"`
	Name            string     `json:"name"`
	Kind            int        `json:"kind"`
	TypeName        string     `json:"type_name,omitempty"` // the name of a PROTO or ENUM type
	Array           bool       `json:"array,omitempty"`
	Length          int64      `json:"length,omitempty"`
	Max             bool       `json:"max,omitempty"`
	VectorLength    int64      `json:"vector_length,omitempty"`
	NotNull         bool       `json:"not_null,omitempty"`
	Hidden          bool       `json:"hidden,omitempty"`
	CommitTimestamp bool       `json:"commit_timestamp,omitempty"`
	Locality        string     `json:"locality_group,omitempty"`
	PlacementKey    bool       `json:"placement_key,omitempty"`
	Default         *string    `json:"default,omitempty"`
	OnUpdate        *string    `json:"on_update,omitempty"`
	Identity        *Generator `json:"identity,omitempty"`
	Generated       *string    `json:"generated,omitempty"`
	// GeneratedUses lists the columns that Generated reads, in the order of Expr.Uses. It is empty if the catalog
	// was stored in format 1 (see Format1).
	GeneratedUses []ColumnID `json:"generated_uses,omitempty"`
	// GeneratedCalls and DefaultCalls list the functions that Generated and Default call.
	GeneratedCalls []TableID `json:"generated_calls,omitempty"`
	DefaultCalls   []TableID `json:"default_calls,omitempty"`
	Stored         bool      `json:"stored,omitempty"`
	WriteOnly      bool      `json:"write_only,omitempty"`
}

type storedKeyPart struct {
	Column ColumnID `json:"column"`
	Desc   bool     `json:"desc,omitempty"`
}

type storedCheck struct {
	Name      string     `json:"name"`
	Generated bool       `json:"generated,omitempty"`
	SQL       string     `json:"sql"`
	Uses      []ColumnID `json:"uses,omitempty"`  // the columns that SQL reads
	Calls     []TableID  `json:"calls,omitempty"` // the functions that SQL calls
}

type storedIndex struct {
	ID           TableID `json:"id"`
	Schema       string  `json:"schema,omitempty"`
	Name         string  `json:"name"`
	Unique       bool    `json:"unique,omitempty"`
	NullFiltered bool    `json:"null_filtered,omitempty"`
	Managed      bool    `json:"managed,omitempty"`
	WriteOnly    bool    `json:"write_only,omitempty"`
	// ValidateUnique says that the state of the index is IndexValidateUnique.
	ValidateUnique bool `json:"validate_unique,omitempty"`

	Key      []storedKeyPart `json:"key"`
	Storing  []ColumnID      `json:"storing,omitempty"`
	NotNull  []ColumnID      `json:"not_null,omitempty"`
	Parent   TableID         `json:"parent,omitempty"`
	Columnar ColumnarPolicy  `json:"columnar_policy,omitempty"`
	Locality string          `json:"locality_group,omitempty"`
}

type storedForeignKey struct {
	Name              string     `json:"name"`
	Generated         bool       `json:"generated,omitempty"`
	Columns           []ColumnID `json:"columns"`
	Referenced        TableID    `json:"referenced"`
	ReferencedColumns []ColumnID `json:"referenced_columns"`
	Cascade           bool       `json:"cascade,omitempty"`
	NotEnforced       bool       `json:"not_enforced,omitempty"`
	Index             TableID    `json:"index,omitempty"`
	ReferencedIndex   TableID    `json:"referenced_index,omitempty"`
}

var interleaveNames = map[Interleave]string{
	NotInterleaved: "", InterleaveIn: "in", InterleaveNoAction: "no action", InterleaveCascade: "cascade",
}

// Marshal encodes the catalog as its differences from the previous version, before, which is nil for the first version.
func (c *Catalog) Marshal(before *Catalog) (*Encoding, error) {
	if before == nil {
		before = NewCatalog()
	}
	s := storedCatalog{
		Format: storageFormat, Database: c.Database, Version: c.Version, NextID: c.NextID, Schemas: c.Schemas, Options: c.Options,
	}
	for _, stream := range c.Streams {
		s.ChangeStreams = append(s.ChangeStreams, storeChangeStream(stream))
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode catalog: %w", err)
	}
	e := &Encoding{Catalog: data, Objects: map[TableID][]byte{}}
	immutable.Differences(before.tables, c.tables, func(id TableID, was, is *Table) {
		switch {
		case is == nil:
			e.Objects[id] = nil
		case was == nil || !is.definedAs(was):
			data, failed := json.Marshal(storeTable(is))
			e.Objects[id], err = data, cmp.Or(err, failed)
		}
	})
	if err = cmp.Or(err, e.storeObjects(before, c)); err != nil {
		return nil, fmt.Errorf("encode catalog: %w", err)
	}
	return e, nil
}

// definedAs reports whether two versions of a table have the same encoding.
func (t *Table) definedAs(o *Table) bool {
	return t.sharesColumns(o) || reflect.DeepEqual(storeTable(t), storeTable(o))
}

func storeTable(t *Table) storedTable {
	s := storedTable{
		ID: t.ID, Schema: t.Schema, Name: t.Name, Key: storeKey(t.Key), NextColumn: t.NextColumn,
		Interleave: interleaveNames[t.Interleave], Columnar: t.ColumnarPolicy, Locality: t.LocalityGroup, Synonym: t.Synonym,
	}
	if t.Parent != nil {
		s.Parent = t.Parent.ID
	}
	if t.ProtoBundle != nil {
		s.ProtoBundle = t.ProtoBundle.Revision
	}
	if p := t.RowDeletionPolicy; p != nil {
		s.RowDeletion = &storedRowDeletion{Column: p.Column.ID, Days: p.Days}
	}
	for _, c := range t.Columns {
		s.Columns = append(s.Columns, storeColumn(c))
	}
	for _, c := range t.Checks {
		s.Checks = append(s.Checks, storedCheck{Name: c.Name, Generated: c.NameGenerated, SQL: c.Expr.SQL, Uses: storeColumns(c.Expr.Uses), Calls: storeFunctions(c.Expr.Functions)})
	}
	for _, i := range t.Indexes {
		s.Indexes = append(s.Indexes, storeIndex(i))
	}
	for _, fk := range t.ForeignKeys {
		s.ForeignKeys = append(s.ForeignKeys, storeForeignKey(fk))
	}
	return s
}

func storeColumn(c *Column) storedColumn {
	s := storedColumn{
		ID: c.ID, Name: c.Name, Kind: int(c.Type.Kind), Length: c.MaxLength, Max: c.LengthIsMax, VectorLength: c.VectorLength, NotNull: c.NotNull,
		Hidden: c.Hidden, CommitTimestamp: c.AllowCommitTimestamp, Locality: c.LocalityGroup, PlacementKey: c.PlacementKey, Stored: c.Stored, WriteOnly: c.State == ColumnWriteOnly,
		Default: storeExpr(c.Default), OnUpdate: storeExpr(c.OnUpdate), Generated: storeExpr(c.Generated),
	}
	if c.Default != nil {
		s.DefaultCalls = storeFunctions(c.Default.Functions)
	}
	if c.Identity != nil {
		s.Identity, s.Default = c.Identity, nil
	}
	if c.Generated != nil {
		s.GeneratedUses, s.GeneratedCalls = storeColumns(c.Generated.Uses), storeFunctions(c.Generated.Functions)
	}
	if c.Type.Kind == value.Array {
		s.Array, s.Kind = true, int(c.Type.Elem.Kind)
	}
	s.TypeName = elementOf(c.Type).Name
	return s
}

func storeChangeStream(s *ChangeStream) storedChangeStream {
	stored := storedChangeStream{ID: s.ID, Name: s.Name, All: s.All, Options: s.Options}
	for _, w := range s.Tables {
		stored.Tables = append(stored.Tables, storedWatchedTable(w))
	}
	return stored
}

func storeExpr(e *Expr) *string {
	if e == nil {
		return nil
	}
	return &e.SQL
}

func storeKey(key []KeyPart) []storedKeyPart {
	var s []storedKeyPart
	for _, p := range key {
		s = append(s, storedKeyPart{Column: p.Column.ID, Desc: p.Desc})
	}
	return s
}

func storeColumns(columns []*Column) []ColumnID {
	var ids []ColumnID
	for _, c := range columns {
		ids = append(ids, c.ID)
	}
	return ids
}

func storeFunctions(functions []*Function) []TableID {
	var ids []TableID
	for _, f := range functions {
		ids = append(ids, f.ID)
	}
	return ids
}

func storeIndex(i *Index) storedIndex {
	s := storedIndex{
		ID: i.ID, Schema: i.Schema, Name: i.Name, Unique: i.Unique, NullFiltered: i.NullFiltered, Managed: i.Managed,
		WriteOnly: i.State == IndexWriteOnly, ValidateUnique: i.State == IndexValidateUnique, Key: storeKey(i.Key), Storing: storeColumns(i.Storing), NotNull: storeColumns(i.NotNullColumns),
		Columnar: i.ColumnarPolicy, Locality: i.LocalityGroup,
	}
	if i.Parent != nil {
		s.Parent = i.Parent.ID
	}
	return s
}

func storeForeignKey(fk *ForeignKey) storedForeignKey {
	s := storedForeignKey{
		Name: fk.Name, Generated: fk.NameGenerated, Columns: storeColumns(fk.Columns), Referenced: fk.Referenced.ID,
		ReferencedColumns: storeColumns(fk.ReferencedColumns), Cascade: fk.Cascade, NotEnforced: fk.NotEnforced,
	}
	if fk.Index != nil {
		s.Index = fk.Index.ID
	}
	if fk.ReferencedIndex != nil {
		s.ReferencedIndex = fk.ReferencedIndex.ID
	}
	return s
}

// Format1 is the JSON in which format 1 stored a whole catalog for each schema version. JSON of a later format can be
// decoded into a Format1, too; the field Format then tells which format the JSON has.
type Format1 struct {
	storedCatalog
	Tables []json.RawMessage `json:"tables"`
}

// Split converts a catalog from format 1 to an Encoding. The Encoding refers to no previous version, so it has all
// tables. If two versions of the catalog define a table in the same way, the encodings of the table are equal byte for
// byte.
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

// storedID returns the ID of an encoded table. It decodes only the first field, which is the ID, because decoding
// thousands of versions with thousands of tables each would take minutes.
func storedID(data []byte) (TableID, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil { // the opening brace
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
