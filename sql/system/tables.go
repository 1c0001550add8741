package system

import (
	"maps"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// The states of columns and indexes: writeOnly while a schema change back-fills them, committed otherwise.
const (
	committed = "COMMITTED"
	writeOnly = "WRITE_ONLY"
)

func schemata(b *builder) {
	for _, name := range append([]string{"", InformationSchema, SpannerSys}, b.catalog.Schemas...) {
		b.add("", name, nil, nil)
	}
}

func databaseOptions(b *builder) {
	b.add("", "", "database_dialect", "STRING(MAX)", "GOOGLE_STANDARD_SQL")
	options := b.catalog.Options
	for _, name := range slices.Sorted(maps.Keys(options)) {
		text := options[name]
		if options.Type(name) == "BOOL" {
			text = strings.ToUpper(text)
		}
		b.add("", "", name, options.Type(name), text)
	}
}

func tables(b *builder) {
	for _, t := range b.wanted() {
		if builtIn(t) {
			b.add("", t.Schema, t.Name, nil, nil, "VIEW", nil, nil, nil)
			continue
		}
		var parent, onDelete, interleave, expires any
		if t.Parent != nil {
			parent = t.Parent.Name
		}
		switch t.Interleave {
		case schema.InterleaveIn:
			interleave = "IN"
		case schema.InterleaveNoAction:
			interleave, onDelete = "IN PARENT", "NO ACTION"
		case schema.InterleaveCascade:
			interleave, onDelete = "IN PARENT", "CASCADE"
		}
		if p := t.RowDeletionPolicy; p != nil {
			expires = p.SQL()
		}
		b.add("", t.Schema, t.Name, parent, onDelete, "BASE TABLE", committed, interleave, expires)
	}
}

func columns(b *builder) {
	for _, t := range b.wanted() {
		for _, c := range t.Columns {
			var stored any
			generated := "NEVER"
			if c.Generated != nil {
				generated, stored = "ALWAYS", yesNo(c.Stored)
			}
			state := committed
			if c.State == schema.ColumnWriteOnly {
				state = writeOnly
			}
			b.add("", t.Schema, t.Name, c.Name, c.Ordinal+1, text(c.Default), nil, yesNo(!c.NotNull), c.TypeSQL(), generated,
				c.Hidden, text(c.Generated), stored, orNull(!builtIn(t), state), "NO", nil, nil, nil, nil, nil, text(c.OnUpdate))
		}
	}
}

// text is the text of an expression, or nil for NULL if there is none.
func text(e *schema.Expr) any {
	if e == nil {
		return nil
	}
	return e.SQL
}

func columnOptions(b *builder) {
	for _, t := range b.wanted() {
		for _, c := range t.Columns {
			if c.AllowCommitTimestamp {
				b.add("", t.Schema, t.Name, c.Name, "allow_commit_timestamp", "BOOL", "TRUE")
			}
		}
	}
}

func columnColumnUsage(b *builder) {
	for _, t := range b.wanted() {
		for _, c := range t.Columns {
			if c.Generated == nil {
				continue
			}
			for _, u := range c.Generated.Uses {
				b.add("", t.Schema, t.Name, u.Name, c.Name)
			}
		}
	}
}

// primaryKey is the name and type of the pseudo-index of a table's key.
const primaryKey = "PRIMARY_KEY"

func indexes(b *builder) {
	for _, t := range b.wanted() {
		if hasKey(t) {
			b.add("", t.Schema, t.Name, primaryKey, primaryKey, "", true, false, nil, false)
		}
		for _, i := range t.Indexes {
			parent, state := "", "READ_WRITE"
			if i.Parent != nil {
				parent = i.Parent.Name
			}
			if i.State == schema.IndexWriteOnly {
				state = writeOnly
			}
			b.add("", t.Schema, t.Name, i.Name, "INDEX", parent, i.Unique, i.NullFiltered, state, i.Managed)
		}
	}
}

// hasKey says whether a table is listed with a primary key. Users' tables are, and built-in tables that declare one.
func hasKey(t *schema.Table) bool { return !builtIn(t) || len(t.Key) > 0 }

func indexColumns(b *builder) {
	for _, t := range b.wanted() {
		for at, p := range t.Key {
			b.add("", t.Schema, t.Name, primaryKey, primaryKey, p.Column.Name, at+1, ordering(p), yesNo(!p.Column.NotNull), p.Column.TypeSQL())
		}
		for _, i := range t.Indexes {
			for at, p := range i.Key {
				nullable := !p.Column.NotNull && !slices.Contains(i.NotNullColumns, p.Column)
				b.add("", t.Schema, t.Name, i.Name, "INDEX", p.Column.Name, at+1, ordering(p), yesNo(nullable), p.Column.TypeSQL())
			}
			for _, c := range i.Storing {
				b.add("", t.Schema, t.Name, i.Name, "INDEX", c.Name, nil, nil, yesNo(!c.NotNull), c.TypeSQL())
			}
		}
	}
}

func ordering(p schema.KeyPart) string {
	if p.Desc {
		return "DESC"
	}
	return "ASC"
}

// optimizerRelease are the days, since 1970, on which optimizer versions 1, 2, ... came out.
// Source: https://cloud.google.com/spanner/docs/query-optimizer/versions.
var optimizerRelease = [schema.NewestOptimizer]int32{
	18065, // 2019-06-18
	18322, // 2020-03-01
	18840, // 2021-08-01
	19052, // 2022-03-01
	19188, // 2022-07-15
	19611, // 2023-09-11
	19860, // 2024-05-17
	20024, // 2024-10-28
}

func optimizerVersions(b *builder) {
	for i, day := range optimizerRelease {
		b.add(i+1, value.OfDate(day), i == len(optimizerRelease)-1)
	}
}
