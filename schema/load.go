package schema

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/crowfoot-db/crowfoot/value"
)

// errDangling is an encoded catalog in which an object refers to one that the catalog does not hold.
var errDangling = errors.New("reference to a missing object")

// Unmarshal decodes what Marshal made and compiles the expressions in it.
func Unmarshal(data []byte, compiler Compiler) (*Catalog, error) {
	var s storedCatalog
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("decode catalog: %w", err)
	}
	if s.Format != storageFormat {
		return nil, fmt.Errorf("decode catalog: unknown format %d, this program knows %d", s.Format, storageFormat)
	}
	c := NewCatalog()
	c.Database, c.Version, c.NextID, c.Schemas = s.Database, s.Version, s.NextID, s.Schemas
	if s.Options != nil {
		c.Options = s.Options
	}
	l := loader{draft: c.draft(nil, compiler), tables: map[TableID]*Table{}, indexes: map[TableID]*Index{}}
	if err := l.load(s.Tables); err != nil {
		return nil, fmt.Errorf("decode catalog: %w", err)
	}
	for _, stmt := range l.DDL() {
		l.size += len(stmt)
	}
	return l.Catalog, nil
}

// loader builds a catalog from its encoding: tables in the order of the encoding, which has parents first.
type loader struct {
	*draft
	tables  map[TableID]*Table
	indexes map[TableID]*Index
}

func (l *loader) load(stored []storedTable) error {
	for _, s := range stored {
		t, err := l.loadTable(s)
		if err != nil {
			return fmt.Errorf("table %s: %w", s.Name, err)
		}
		l.Tables = append(l.Tables, t)
		l.tables[t.ID] = t
	}
	for i, s := range stored {
		t := l.Tables[i]
		for _, si := range s.Indexes {
			if err := l.loadIndex(t, si); err != nil {
				return fmt.Errorf("index %s: %w", si.Name, err)
			}
		}
		l.enter(t)
	}
	for i, s := range stored {
		t := l.Tables[i]
		for _, sf := range s.ForeignKeys {
			if err := l.loadForeignKey(t, sf); err != nil {
				return fmt.Errorf("foreign key %s: %w", sf.Name, err)
			}
		}
		if err := l.recompile(t); err != nil {
			return fmt.Errorf("table %s: %w", s.Name, err)
		}
	}
	return nil
}

func (l *loader) loadTable(s storedTable) (*Table, error) {
	t := &Table{ID: s.ID, Schema: s.Schema, Name: s.Name, NextColumn: s.NextColumn}
	for i, sc := range s.Columns {
		c, err := loadColumn(sc)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", sc.Name, err)
		}
		c.Ordinal = i
		t.Columns = append(t.Columns, c)
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
	for _, sc := range s.Checks {
		t.Checks = append(t.Checks, &Check{Name: sc.Name, NameGenerated: sc.Generated, Expr: &Expr{SQL: sc.SQL}})
	}
	for how, name := range interleaveNames {
		if name == s.Interleave {
			t.Interleave = how
		}
	}
	if s.Parent != 0 {
		if t.Parent = l.tables[s.Parent]; t.Parent == nil {
			return nil, errDangling
		}
		t.Parent.Children = append(t.Parent.Children, t)
	}
	return t, nil
}

func loadColumn(s storedColumn) (*Column, error) {
	c := &Column{
		ID: s.ID, Name: s.Name, MaxLength: s.Length, LengthIsMax: s.Max, NotNull: s.NotNull, Hidden: s.Hidden,
		AllowCommitTimestamp: s.CommitTimestamp, Stored: s.Stored, KeyOrdinal: -1,
		Default: loadExpr(s.Default), OnUpdate: loadExpr(s.OnUpdate), Generated: loadExpr(s.Generated),
	}
	if s.WriteOnly {
		c.State = ColumnWriteOnly
	}
	switch kind := value.Kind(s.Kind); kind {
	case value.String:
		c.Type = value.StringType
	case value.Bytes:
		c.Type = value.BytesType
	default:
		c.Type = scalarTypes[kind.String()]
	}
	if c.Type == nil || int(c.Type.Kind) != s.Kind {
		return nil, fmt.Errorf("unknown type %d", s.Kind)
	}
	if s.Array {
		c.Type = value.ArrayOf(c.Type)
	}
	return c, nil
}

func loadExpr(sql *string) *Expr {
	if sql == nil {
		return nil
	}
	return &Expr{SQL: *sql}
}

func (t *Table) byID(id ColumnID) (*Column, error) {
	for _, c := range t.Columns {
		if c.ID == id {
			return c, nil
		}
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

func (l *loader) loadIndex(t *Table, s storedIndex) (err error) {
	i := &Index{ID: s.ID, Schema: s.Schema, Name: s.Name, Table: t, Unique: s.Unique, NullFiltered: s.NullFiltered, Managed: s.Managed}
	if s.WriteOnly {
		i.State = IndexWriteOnly
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
		if i.Parent = l.tables[s.Parent]; i.Parent == nil {
			return errDangling
		}
	}
	t.Indexes = append(t.Indexes, i)
	l.indexes[i.ID] = i
	return nil
}

func (l *loader) loadForeignKey(t *Table, s storedForeignKey) (err error) {
	fk := &ForeignKey{
		Name: s.Name, NameGenerated: s.Generated, Table: t, Referenced: l.tables[s.Referenced],
		Cascade: s.Cascade, NotEnforced: s.NotEnforced, Index: l.indexes[s.Index], ReferencedIndex: l.indexes[s.ReferencedIndex],
	}
	if fk.Referenced == nil || s.Index != 0 && fk.Index == nil || s.ReferencedIndex != 0 && fk.ReferencedIndex == nil {
		return errDangling
	}
	if fk.Columns, err = t.loadColumns(s.Columns); err != nil {
		return err
	}
	if fk.ReferencedColumns, err = fk.Referenced.loadColumns(s.ReferencedColumns); err != nil {
		return err
	}
	t.ForeignKeys = append(t.ForeignKeys, fk)
	fk.Referenced.ReferencedBy = append(fk.Referenced.ReferencedBy, fk)
	return nil
}
