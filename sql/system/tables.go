package system

import (
	"maps"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// The states of schema objects. A state other than committed means that a schema change of the object has not ended.
const (
	committed        = "COMMITTED"
	writeOnly        = "WRITE_ONLY" // state of columns and indexes that are written and are being back-filled
	validating       = "VALIDATING" // state of CHECK and NOT NULL constraints while existing rows are validated
	addingForeignKey = "ADDING_FOREIGN_KEY"
	// States of foreign keys: first their indexes are back-filled, then existing rows are validated.
	backfillingIndexes = "BACKFILLING_INDEXES"
	validatingData     = "VALIDATING_DATA"
	// The state of a UNIQUE index whose entries are back-filled and are now checked for duplicates.
	validateUnique = "WRITE_ONLY_VALIDATE_UNIQUE"
)

func schemata(b *builder) {
	for _, name := range append([]string{"", InformationSchema, SpannerSys}, b.catalog.Schemas...) {
		var bundle any
		if p := b.catalog.ProtoBundle(); p != nil && name == "" {
			bundle = p.SQL()
		}
		b.add("", name, nil, nil, bundle)
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
	for _, t := range b.tables() {
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
		b.add("", t.Schema, t.Name, parent, onDelete, "BASE TABLE", b.stateOf(t), interleave, expires)
	}
	for _, t := range b.synonyms() {
		b.add("", t.Schema, t.Synonym, nil, nil, "SYNONYM", nil, nil, nil)
	}
	for _, v := range b.views() {
		b.add("", v.Schema, v.Name, nil, nil, "VIEW", nil, nil, nil)
	}
}

// stateOf returns the state of a table of users.
func (b *builder) stateOf(t *schema.Table) string {
	for _, v := range b.validations {
		if v.Kind == schema.ValidateForeignKey && v.Table.ID == t.ID {
			return addingForeignKey
		}
	}
	return committed
}

func columns(b *builder) {
	for _, t := range b.tables() {
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
			byDefault, identity := text(c.Default), identityCells(c.Identity)
			if c.Identity != nil {
				byDefault = nil
			}
			b.add("", t.Schema, t.Name, c.Name, c.Ordinal+1, byDefault, nil, yesNo(!c.NotNull), c.SpannerType(), generated,
				c.Hidden, text(c.Generated), stored, orNull(!builtIn(t), state), yesNo(c.Identity != nil), identity[0], identity[1], identity[2], identity[3], identity[4], text(c.OnUpdate))
		}
	}
	for _, v := range b.views() {
		for i := range v.Columns {
			c := &v.Columns[i]
			b.add("", v.Schema, v.Name, c.Name, i+1, nil, nil, "YES", c.TypeSQL(), "NEVER", false, nil, nil, nil, "NO", nil, nil, nil, nil, nil, nil)
		}
	}
}

// text returns the SQL text of an expression; nil, which means NULL, if e is nil.
func text(e *schema.Expr) any {
	if e == nil {
		return nil
	}
	return e.SQL
}

func columnOptions(b *builder) {
	for _, t := range b.tables() {
		for _, c := range t.Columns {
			if c.AllowCommitTimestamp {
				b.add("", t.Schema, t.Name, c.Name, "allow_commit_timestamp", "BOOL", "TRUE")
			}
			if c.LocalityGroup != "" {
				b.add("", t.Schema, t.Name, c.Name, localityGroup, stringType, c.LocalityGroup)
			}
		}
	}
}

func tableOptions(b *builder) {
	for _, t := range b.tables() {
		if t.ColumnarPolicy != schema.ColumnarInherited {
			b.add("", t.Schema, t.Name, columnarPolicy, stringType, string(t.ColumnarPolicy))
		}
		if t.LocalityGroup != "" {
			b.add("", t.Schema, t.Name, localityGroup, stringType, t.LocalityGroup)
		}
	}
}

func indexOptions(b *builder) {
	for _, t := range b.tables() {
		for _, i := range indexesOf(t) {
			if i.ColumnarPolicy != schema.ColumnarInherited {
				b.add("", t.Schema, t.Name, i.Name, indexType, columnarPolicy, stringType, string(i.ColumnarPolicy))
			}
			if i.LocalityGroup != "" {
				b.add("", t.Schema, t.Name, i.Name, indexType, localityGroup, stringType, i.LocalityGroup)
			}
		}
	}
}

// stringType is the OPTION_TYPE of options with string values; the other constants are names of options.
const (
	stringType     = "STRING(MAX)"
	columnarPolicy = "columnar_policy"
	localityGroup  = "locality_group"
)

func localityGroupOptions(b *builder) {
	for _, g := range b.catalog.LocalityGroups() {
		for name, text := range g.Options {
			b.add(g.Name, name, text)
		}
	}
}

func statisticsPackages(b *builder) {
	for _, p := range b.catalog.StatisticsPackages() {
		b.add("", "", p.Name, !p.Kept)
	}
}

func placements(b *builder) {
	b.add(schema.DefaultPlacement, true)
	for _, p := range b.catalog.Placements() {
		b.add(p.Name, false)
	}
}

func placementOptions(b *builder) {
	for _, p := range b.catalog.Placements() {
		for name, text := range p.Options {
			b.add(p.Name, name, stringType, text)
		}
	}
}

func columnColumnUsage(b *builder) {
	for _, t := range b.tables() {
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

// Values of INDEX_TYPE. primaryKey is also the INDEX_NAME by which a table's primary key is listed.
const (
	primaryKey = "PRIMARY_KEY"
	indexType  = "INDEX"
)

// indexesOf returns the indexes of a table, except those that are being back-filled to replace another index.
func indexesOf(t *schema.Table) []*schema.Index {
	if !slices.ContainsFunc(t.Indexes, func(i *schema.Index) bool { return t.Index(i.FullName()) != i }) {
		return t.Indexes
	}
	return slices.DeleteFunc(slices.Clone(t.Indexes), func(i *schema.Index) bool { return t.Index(i.FullName()) != i })
}

func indexes(b *builder) {
	for _, t := range b.tables() {
		if hasKey(t) {
			b.add("", t.Schema, t.Name, primaryKey, primaryKey, "", true, false, nil, nil, false, nil, nil, nil)
		}
		for _, i := range indexesOf(t) {
			parent, state := "", "READ_WRITE"
			if i.Parent != nil {
				parent = i.Parent.Name
			}
			switch i.State {
			case schema.IndexWriteOnly:
				state = writeOnly
			case schema.IndexValidateUnique:
				state = validateUnique
			}
			filter := i.FilterSQL()
			b.add("", t.Schema, t.Name, i.Name, indexType, parent, i.Unique, i.NullFiltered, state, orNull(filter != "", filter), i.Managed, nil, nil, nil)
		}
	}
}

// hasKey reports whether a table is listed with a primary key. Every table of a user is listed with one, and a built-in
// table if it declares a key.
func hasKey(t *schema.Table) bool { return !builtIn(t) || len(t.Key) > 0 }

func indexColumns(b *builder) {
	for _, t := range b.tables() {
		for at, p := range t.Key {
			b.add("", t.Schema, t.Name, primaryKey, primaryKey, p.Column.Name, at+1, ordering(p), yesNo(!p.Column.NotNull), p.Column.SpannerType(), nil)
		}
		for _, i := range indexesOf(t) {
			for at, p := range i.Key {
				nullable := !p.Column.NotNull && !slices.Contains(i.NotNullColumns, p.Column)
				b.add("", t.Schema, t.Name, i.Name, indexType, p.Column.Name, at+1, ordering(p), yesNo(nullable), p.Column.SpannerType(), nil)
			}
			for _, c := range i.Storing {
				b.add("", t.Schema, t.Name, i.Name, indexType, c.Name, nil, nil, yesNo(!c.NotNull), c.SpannerType(), nil)
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

// optimizerRelease holds the release dates of the optimizer versions 1, 2, ..., in days since 1970. Source:
// https://cloud.google.com/spanner/docs/query-optimizer/versions.
var optimizerRelease = [schema.NewestOptimizer]int32{
	18065, // 2019-06-18: version 1
	18322, // 2020-03-01: version 2
	18840, // 2021-08-01: version 3
	19052, // 2022-03-01: version 4
	19188, // 2022-07-15: version 5
	19611, // 2023-09-11: version 6
	19860, // 2024-05-17: version 7
	20024, // 2024-10-28: version 8
}

func optimizerVersions(b *builder) {
	for i, day := range optimizerRelease {
		b.add(i+1, value.OfDate(day), i == len(optimizerRelease)-1)
	}
}
