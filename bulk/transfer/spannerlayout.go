package transfer

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/crowfoot-db/crowfoot/avrotype"
	"github.com/crowfoot-db/crowfoot/bulk/file"
)

// SpannerExport is the layout of Cloud Spanner's own exports (its Dataflow template "Cloud Spanner to Cloud Storage Avro"). Its folder contains
//
//	spanner-export.json            options of the database, its proto bundle, its tables, views, sequences, placements and change streams, and the manifest of each
//	TABLE-manifest.json            the table's files and their MD5 sums
//	TABLE.avro-00000-of-00002      rows, and in the properties of the Avro schema the table's definition
//
// The layout cannot represent some definitions (see spannerRecords.beside). The statements of manifest.json contain
// these definitions. The template ignores manifest.json, whereas it would refuse unknown names in spanner-export.json.
// Source: https://github.com/GoogleCloudPlatform/DataflowTemplates, v1, package com.google.cloud.teleport.spanner,
// DdlToAvroSchemaConverter and ExportTransform.
const SpannerExport file.Format = "spanner"

const spannerExportName = "spanner-export.json"

// spannerExport is the content of spanner-export.json.
type spannerExport struct {
	Tables           []spannerObject `json:"tables"`
	DatabaseOptions  []spannerOption `json:"databaseOptions,omitempty"`
	ChangeStreams    []spannerObject `json:"changeStreams,omitempty"`
	Sequences        []spannerObject `json:"sequences,omitempty"`
	Placements       []spannerObject `json:"placements,omitempty"`
	Functions        []spannerObject `json:"udfs,omitempty"` // only Google's template writes this field
	ProtoDescriptors []byte          `json:"protoDescriptors,omitempty"`
	ProtoBundle      []string        `json:"protoBundle,omitempty"`
	Dialect          string          `json:"dialect,omitempty"`
}

type spannerOption struct {
	Name  string `json:"optionName"`
	Type  string `json:"optionType"` // STRING, or another type, for which Value is an SQL literal
	Value string `json:"optionValue"`
}

// spannerOptions lists the database options that Google's Dataflow template exports.
var spannerOptions = []string{"version_retention_period", "default_sequence_kind", "default_time_zone"}

// spannerObject is a table, view, named schema, change stream, placement, sequence or function.
type spannerObject struct {
	Name         string   `json:"name"`
	DataFiles    []string `json:"dataFiles,omitempty"`
	ManifestFile string   `json:"manifestFile,omitempty"`
}

// spannerManifest is the content of TABLE-manifest.json.
type spannerManifest struct {
	Files []spannerFile `json:"files"`
}

type spannerFile struct {
	Name string `json:"name"`
	MD5  string `json:"md5"`
}

// These are names of properties in Avro schemas, and some of their values.
const (
	propName             = "spannerName"
	propParent           = "spannerParent"
	propInterleaveType   = "spannerInterleaveType"
	propOnDelete         = "spannerOnDeleteAction"
	propPrimaryKey       = "spannerPrimaryKey"
	propIndex            = "spannerIndex_"
	propForeignKey       = "spannerForeignKey_"
	propCheck            = "spannerCheckConstraint_"
	propOption           = "spannerOption_"
	propEntity           = "spannerEntity"
	propForClause        = "spannerChangeStreamForClause"
	propHidden           = "hidden"
	propNotNull          = "notNull"
	propGenerated        = "generationExpression"
	propStored           = "stored"
	propDefault          = "defaultExpression"
	propIdentity         = "identityColumn"
	propSequenceKind     = "sequenceKind"
	propSequenceOption   = "sequenceOption_"
	propSkipMin          = "skipRangeMin"
	propSkipMax          = "skipRangeMax"
	propCounterStart     = "counterStartValue"
	propViewQuery        = "spannerViewQuery"
	propViewSecurity     = "spannerViewSecurity"
	propSQLType          = "sqlType"
	propPlacementKey     = "spannerPlacementKey"
	entityNamedSchema    = "spannerNamedSchema"
	entityPlacement      = "Placement"
	spannerAvroNamespace = "spannerexport"
	spannerFormatVersion = "1.0.0"
	spannerStorage       = "CloudSpanner"
	propFormatVersion    = "googleFormatVersion"
	propStorage          = "googleStorage"
)

// spannerRecords holds the Avro schemas of the objects in a database's DDL. The keys of the map tables are the names of
// the tables, in lower case.
type spannerRecords struct {
	tables    map[string]*file.AvroRecord
	schemas   []*file.AvroRecord
	sequences []*file.AvroRecord
	places    []*file.AvroRecord
	views     []*file.AvroRecord
	streams   []*file.AvroRecord
	options   []spannerOption
	protos    []string
	// beside names the objects that the layout cannot represent.
	beside []string
}

// recordsOf converts DDL statements to Avro schemas.
func recordsOf(ddl []string) (*spannerRecords, error) {
	r := &spannerRecords{tables: map[string]*file.AvroRecord{}}
	for _, text := range ddl {
		statement, err := parseDDL(text)
		if err != nil && strings.HasPrefix(text, "CREATE TABLE") {
			return nil, fmt.Errorf("the DDL of the database: %w", err)
		}
		switch s := statement.(type) {
		case *ast.AlterDatabase:
			r.databaseOptions(s.Options)
		case *ast.CreateProtoBundle:
			for _, t := range s.Types.Types {
				r.protos = append(r.protos, typeName(t))
			}
		case *ast.CreateSchema:
			record := newRecord(s.Name.Name)
			add(record, propEntity, entityNamedSchema)
			r.schemas = append(r.schemas, record)
		case *ast.CreatePlacement:
			record := newRecord(s.Name.Name)
			add(record, propEntity, entityPlacement)
			record.Properties = append(record.Properties, options(s.Options)...)
			r.places = append(r.places, record)
		case *ast.CreateTable:
			r.tables[strings.ToLower(pathName(s.Name))] = tableRecord(s)
			r.besideTable(s)
		case *ast.CreateIndex:
			if t := r.tables[strings.ToLower(pathName(s.TableName))]; t != nil {
				addNumbered(t, propIndex, s.SQL())
			}
		case *ast.AlterTable:
			if c, ok := s.TableAlteration.(*ast.AddTableConstraint); ok && r.tables[strings.ToLower(pathName(s.Name))] != nil {
				constraint(r.tables[strings.ToLower(pathName(s.Name))], pathName(s.Name), c.TableConstraint)
			}
		case *ast.CreateSequence:
			r.sequences = append(r.sequences, sequenceRecord(s))
		case *ast.CreateView:
			record := newRecord(pathName(s.Name))
			add(record, propViewQuery, strings.TrimSpace(text[s.Query.Pos():]))
			add(record, propViewSecurity, string(s.SecurityType))
			r.views = append(r.views, record)
		case *ast.CreateChangeStream:
			record := newRecord(s.Name.Name)
			add(record, propForClause, forClause(text, s))
			record.Properties = append(record.Properties, options(s.Options)...)
			r.streams = append(r.streams, record)
		default:
			r.beside = append(r.beside, cmp.Or(first(madeBy(text)), first(strings.Fields(text))))
		}
	}
	slices.Sort(r.beside)
	r.beside = slices.Compact(r.beside)
	return r, nil
}

// forClause returns the FOR clause of a change stream. It takes the clause from the statement's text, since the clause
// may contain more than the parser supports.
func forClause(text string, s *ast.CreateChangeStream) string {
	if s.For == nil {
		return ""
	}
	end := token.Pos(len(text))
	if s.Options != nil {
		end = s.Options.Pos()
	}
	return strings.TrimSpace(text[s.For.Pos():end])
}

func (r *spannerRecords) databaseOptions(o *ast.Options) {
	for _, option := range o.Records {
		name := strings.ToLower(option.Name.Name)
		value, isText := option.Value.(*ast.StringLiteral)
		if !isText || !slices.Contains(spannerOptions, name) {
			r.beside = append(r.beside, "database option "+name)
			continue
		}
		r.options = append(r.options, spannerOption{name, "STRING", value.Value})
	}
}

// besideTable adds to r.beside the properties of a table that the layout cannot represent.
func (r *spannerRecords) besideTable(s *ast.CreateTable) {
	name := pathName(s.Name)
	if len(s.Synonyms) > 0 {
		r.beside = append(r.beside, "the synonym of "+name)
	}
	if s.RowDeletionPolicy != nil {
		r.beside = append(r.beside, "the row deletion policy of "+name)
	}
	if s.Options != nil {
		r.beside = append(r.beside, "the options of "+name)
	}
	for _, c := range s.Columns {
		if d, ok := c.DefaultSemantics.(*ast.ColumnDefaultExpr); ok && d.OnUpdate != nil {
			r.beside = append(r.beside, "ON UPDATE of "+name+"."+c.Name.Name)
		}
	}
}

// typeName returns the name of a message or an enumeration.
func typeName(t *ast.NamedType) string { return pathName(&ast.Path{Idents: t.Path}) }

// newRecord returns an Avro schema for an object, with the properties that every object has. It replaces dots in the
// name, which Avro does not allow.
func newRecord(name string) *file.AvroRecord {
	r := &file.AvroRecord{Name: strings.ReplaceAll(name, ".", "_"), Namespace: spannerAvroNamespace}
	add(r, propName, name)
	add(r, propFormatVersion, spannerFormatVersion)
	add(r, propStorage, spannerStorage)
	return r
}

func add(r *file.AvroRecord, name, value string) {
	r.Properties = append(r.Properties, avrotype.Property{Name: name, Value: value})
}

// addNumbered adds a property to r. The property is called name0, name1 and so on, where name is the parameter and the
// number is the lowest that is not used yet.
func addNumbered(r *file.AvroRecord, name, value string) {
	n := 0
	for slices.ContainsFunc(r.Properties, func(p avrotype.Property) bool { return p.Name == name+strconv.Itoa(n) }) {
		n++
	}
	add(r, name+strconv.Itoa(n), value)
}

func options(o *ast.Options) (list []avrotype.Property) { return optionsAs(propOption, o) }

// optionsAs converts options to properties. The properties are called name0, name1 and so on, where name is the
// parameter.
func optionsAs(name string, o *ast.Options) (list []avrotype.Property) {
	if o == nil {
		return nil
	}
	for i, d := range o.Records {
		list = append(list, avrotype.Property{Name: name + strconv.Itoa(i), Value: d.Name.Name + "=" + d.Value.SQL()})
	}
	return list
}

// sequenceRecord returns the Avro schema of a sequence. It writes all properties as options, which every version of the
// template understands.
func sequenceRecord(s *ast.CreateSequence) *file.AvroRecord {
	r := newRecord(pathName(s.Name))
	list := optionsAs(propSequenceOption, s.Options)
	if s.Options == nil {
		values := []string{"sequence_kind='bit_reversed_positive'"}
		for _, c := range s.Params {
			switch c := c.(type) {
			case *ast.SkipRange:
				values = append(values, "skip_range_min="+c.Min.SQL(), "skip_range_max="+c.Max.SQL())
			case *ast.StartCounterWith:
				values = append(values, "start_with_counter="+c.Counter.SQL())
			}
		}
		for i, v := range values {
			list = append(list, avrotype.Property{Name: propSequenceOption + strconv.Itoa(i), Value: v})
		}
	}
	r.Properties = append(r.Properties, list...)
	return r
}

// sequenceProperties converts the clauses of an identity column to properties of an Avro schema.
func sequenceProperties(clauses []ast.SequenceParam) (list []avrotype.Property) {
	for _, c := range clauses {
		switch c := c.(type) {
		case *ast.BitReversedPositive:
			list = append(list, avrotype.Property{Name: propSequenceKind, Value: "bit_reversed_positive"})
		case *ast.SkipRange:
			list = append(list, avrotype.Property{Name: propSkipMin, Value: c.Min.SQL()}, avrotype.Property{Name: propSkipMax, Value: c.Max.SQL()})
		case *ast.StartCounterWith:
			list = append(list, avrotype.Property{Name: propCounterStart, Value: c.Counter.SQL()})
		}
	}
	return list
}

func tableRecord(s *ast.CreateTable) *file.AvroRecord {
	name := pathName(s.Name)
	r := newRecord(name)
	if s.Cluster != nil {
		add(r, propParent, pathName(s.Cluster.TableName))
		kind, action := "IN", "no action"
		if s.Cluster.Enforced {
			kind = "IN PARENT"
		}
		if s.Cluster.OnDelete == ast.OnDeleteCascade {
			action = "cascade"
		}
		add(r, propInterleaveType, kind)
		add(r, propOnDelete, action)
	}
	var keys []string
	for _, k := range s.PrimaryKeys {
		direction := "ASC"
		if k.Dir == ast.DirectionDesc {
			direction = "DESC"
		}
		keys = append(keys, "`"+k.Name.Name+"` "+direction)
	}
	for _, c := range s.Columns {
		if c.PrimaryKey {
			keys = append(keys, "`"+c.Name.Name+"` ASC")
		}
		r.Columns = append(r.Columns, avroColumn(c))
	}
	add(r, propPrimaryKey, strings.Join(keys, ","))
	for i, k := range keys {
		add(r, propPrimaryKey+"_"+strconv.Itoa(i), k)
	}
	for _, c := range s.TableConstraints {
		constraint(r, name, c)
	}
	return r
}

// constraint adds a table constraint to the Avro schema r. A foreign key becomes a property with an ALTER TABLE
// statement. A check constraint becomes a property with the text of the constraint.
func constraint(r *file.AvroRecord, table string, c *ast.TableConstraint) {
	if _, ok := c.Constraint.(*ast.ForeignKey); ok {
		addNumbered(r, propForeignKey, "ALTER TABLE "+quoteName(table)+" ADD "+c.SQL())
		return
	}
	addNumbered(r, propCheck, c.SQL())
}

func avroColumn(c *ast.ColumnDef) file.AvroColumn {
	column := file.AvroColumn{Name: c.Name.Name}
	property := func(name, value string) {
		column.Properties = append(column.Properties, avrotype.Property{Name: name, Value: value})
	}
	switch d := c.DefaultSemantics.(type) {
	case *ast.GeneratedColumnExpr:
		column.Generated = true
		property(propSQLType, c.Type.SQL())
		property(propNotNull, strconv.FormatBool(c.NotNull))
		property(propGenerated, d.Expr.SQL())
		property(propStored, strconv.FormatBool(!d.Stored.Invalid()))
	case *ast.ColumnDefaultExpr:
		property(propDefault, d.Expr.SQL())
	case *ast.IdentityColumn:
		property(propIdentity, "true")
		column.Properties = append(column.Properties, sequenceProperties(d.Params)...)
	case *ast.AutoIncrement:
		property(propIdentity, "true")
	}
	if c.PlacementKey != nil {
		property(propPlacementKey, "true")
	}
	property(propHidden, strconv.FormatBool(!c.Hidden.Invalid()))
	column.Properties = append(column.Properties, options(c.Options)...)
	return column
}

// finishSpanner writes those files of the layout that have no rows.
func (e *exporter) finishSpanner() error {
	export := spannerExport{Dialect: "GOOGLE_STANDARD_SQL", Tables: []spannerObject{}, DatabaseOptions: e.records.options, ProtoBundle: e.records.protos}
	if len(export.ProtoBundle) > 0 {
		export.ProtoDescriptors = e.ProtoDescriptors
	}
	for _, t := range e.state.Tables {
		n := max(len(t.Partitions), 1)
		m := spannerManifest{}
		for k := range n {
			f := e.done[fileName(t.Name, k, n, e.Format)]
			m.Files = append(m.Files, spannerFile{f.Name, f.MD5})
		}
		if err := e.spannerObject(&export.Tables, t.Name, m); err != nil {
			return err
		}
	}
	for _, list := range []struct {
		records []*file.AvroRecord
		to      *[]spannerObject
	}{{e.records.schemas, &export.Tables}, {e.records.sequences, &export.Sequences}, {e.records.places, &export.Placements}, {e.records.views, &export.Tables},
		{e.records.streams, &export.ChangeStreams}} {
		for _, r := range list.records {
			f, err := e.writeDefinition(r)
			if err == nil {
				err = e.spannerObject(list.to, r.Properties[0].Value, spannerManifest{[]spannerFile{{f.Name, f.MD5}}})
			}
			if err != nil {
				return err
			}
		}
	}
	return writeJSON(filepath.Join(e.Dir, spannerExportName), export)
}

// leaveOut removes the views and change streams, since they may refer to tables that are not exported. It adds their
// names to r.beside.
func (r *spannerRecords) leaveOut() {
	for _, record := range r.views {
		r.beside = append(r.beside, "view "+record.Properties[0].Value)
	}
	for _, record := range r.streams {
		r.beside = append(r.beside, "change stream "+record.Properties[0].Value)
	}
	r.views, r.streams = nil, nil
}

// first returns the first element of a list, or the zero value if the list is empty.
func first[T any](list []T) (none T) {
	if len(list) == 0 {
		return none
	}
	return list[0]
}

// spannerObject writes m, the manifest of an object, to a file. It also appends the object to *to, which is a list in
// spanner-export.json.
func (e *exporter) spannerObject(to *[]spannerObject, name string, m spannerManifest) error {
	*to = append(*to, spannerObject{Name: name, ManifestFile: name + "-manifest.json"})
	return writeJSON(filepath.Join(e.Dir, name+"-manifest.json"), m)
}
