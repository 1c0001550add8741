package transfer

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/bulk/file"
)

// SpannerExport is the layout of Cloud Spanner's own exports (its Dataflow template "Cloud Spanner to Cloud Storage Avro"): a folder with
//
//	spanner-export.json            the tables, views, sequences and change streams, and the manifest of each
//	TABLE-manifest.json            the table's files and their MD5 sums
//	TABLE.avro-00000-of-00002      rows, and in the properties of the Avro schema the table's definition
//
// Row deletion policies, options of tables and indexes, synonyms, roles, placements and proto bundles have no place in it.
const SpannerExport file.Format = "spanner"

const spannerExportName = "spanner-export.json"

// spannerExport is spanner-export.json.
type spannerExport struct {
	Tables        []spannerObject `json:"tables"`
	ChangeStreams []spannerObject `json:"changeStreams,omitempty"`
	Sequences     []spannerObject `json:"sequences,omitempty"`
	Dialect       string          `json:"dialect,omitempty"`
}

// spannerObject is a table, view, schema, change stream or sequence.
type spannerObject struct {
	Name         string   `json:"name"`
	DataFiles    []string `json:"dataFiles,omitempty"`
	ManifestFile string   `json:"manifestFile,omitempty"`
}

// spannerManifest is TABLE-manifest.json.
type spannerManifest struct {
	Files []spannerFile `json:"files"`
}

type spannerFile struct {
	Name string `json:"name"`
	MD5  string `json:"md5"`
}

// Names of properties of Avro schemas.
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
	entityNamedSchema    = "spannerNamedSchema"
	spannerAvroNamespace = "spannerexport"
	spannerFormatVersion = "1.0.0"
	spannerStorage       = "CloudSpanner"
	propFormatVersion    = "googleFormatVersion"
	propStorage          = "googleStorage"
)

// spannerRecords are the Avro schemas of what a database's DDL defines, by lower case name.
type spannerRecords struct {
	tables    map[string]*file.AvroRecord
	schemas   []*file.AvroRecord
	sequences []*file.AvroRecord
	views     []*file.AvroRecord
	streams   []*file.AvroRecord
}

// parseDDL parses a statement. memefish wants OPTIONS in CREATE SEQUENCE, and the options are not the statement's own if it has none.
func parseDDL(text string) (ast.DDL, error) {
	statement, err := memefish.ParseDDL("", text)
	if err != nil && strings.HasPrefix(text, "CREATE SEQUENCE") {
		if s, again := memefish.ParseDDL("", text+" OPTIONS (none = NULL)"); again == nil {
			s.(*ast.CreateSequence).Options = nil
			return s, nil
		}
	}
	return statement, err
}

// recordsOf makes the Avro schemas of statements of DDL.
func recordsOf(ddl []string) (*spannerRecords, error) {
	r := &spannerRecords{tables: map[string]*file.AvroRecord{}}
	for _, text := range ddl {
		statement, err := parseDDL(text)
		if err != nil && strings.HasPrefix(text, "CREATE TABLE") {
			return nil, fmt.Errorf("the DDL of the database: %w", err)
		}
		switch s := statement.(type) {
		case *ast.CreateSchema:
			record := newRecord(s.Name.Name)
			add(record, propEntity, entityNamedSchema)
			r.schemas = append(r.schemas, record)
		case *ast.CreateTable:
			r.tables[strings.ToLower(pathName(s.Name))] = tableRecord(s)
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
			clause := ""
			if s.For != nil {
				clause = s.For.SQL()
			}
			add(record, propForClause, clause)
			record.Properties = append(record.Properties, options(s.Options)...)
			r.streams = append(r.streams, record)
		}
	}
	return r, nil
}

// newRecord begins the schema of an object. A name with a dot cannot be that of a record.
func newRecord(name string) *file.AvroRecord {
	r := &file.AvroRecord{Name: strings.ReplaceAll(name, ".", "_"), Namespace: spannerAvroNamespace}
	add(r, propName, name)
	add(r, propFormatVersion, spannerFormatVersion)
	add(r, propStorage, spannerStorage)
	return r
}

func add(r *file.AvroRecord, name, value string) {
	r.Properties = append(r.Properties, file.AvroProperty{Name: name, Value: value})
}

// addNumbered adds a property whose name ends with the number of those with this name.
func addNumbered(r *file.AvroRecord, name, value string) {
	n := 0
	for slices.ContainsFunc(r.Properties, func(p file.AvroProperty) bool { return p.Name == name+strconv.Itoa(n) }) {
		n++
	}
	add(r, name+strconv.Itoa(n), value)
}

func pathName(p *ast.Path) string {
	var names []string
	for _, i := range p.Idents {
		names = append(names, i.Name)
	}
	return strings.Join(names, ".")
}

// quoteName quotes a name, which may be that of a named schema's object.
func quoteName(name string) string { return "`" + strings.ReplaceAll(name, ".", "`.`") + "`" }

func options(o *ast.Options) (list []file.AvroProperty) { return optionsAs(propOption, o) }

// optionsAs are options as properties whose names begin with name.
func optionsAs(name string, o *ast.Options) (list []file.AvroProperty) {
	if o == nil {
		return nil
	}
	for i, d := range o.Records {
		list = append(list, file.AvroProperty{Name: name + strconv.Itoa(i), Value: d.Name.Name + "=" + d.Value.SQL()})
	}
	return list
}

func sequenceRecord(s *ast.CreateSequence) *file.AvroRecord {
	r := newRecord(pathName(s.Name))
	r.Properties = append(r.Properties, sequenceProperties(s.Params)...)
	r.Properties = append(r.Properties, optionsAs(propSequenceOption, s.Options)...)
	return r
}

// sequenceProperties are the clauses of a sequence or an identity column.
func sequenceProperties(clauses []ast.SequenceParam) (list []file.AvroProperty) {
	for _, c := range clauses {
		switch c := c.(type) {
		case *ast.BitReversedPositive:
			list = append(list, file.AvroProperty{Name: propSequenceKind, Value: "bit_reversed_positive"})
		case *ast.SkipRange:
			list = append(list, file.AvroProperty{Name: propSkipMin, Value: c.Min.SQL()}, file.AvroProperty{Name: propSkipMax, Value: c.Max.SQL()})
		case *ast.StartCounterWith:
			list = append(list, file.AvroProperty{Name: propCounterStart, Value: c.Counter.SQL()})
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

// constraint adds a foreign key, as the statement that adds it, or a check.
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
		column.Properties = append(column.Properties, file.AvroProperty{Name: name, Value: value})
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
	property(propHidden, strconv.FormatBool(!c.Hidden.Invalid()))
	column.Properties = append(column.Properties, options(c.Options)...)
	return column
}

// finishSpanner writes the files of the layout beside those with rows.
func (e *exporter) finishSpanner() error {
	export := spannerExport{Dialect: "GOOGLE_STANDARD_SQL", Tables: []spannerObject{}}
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
	}{{e.records.schemas, &export.Tables}, {e.records.sequences, &export.Sequences}, {e.records.views, &export.Tables}, {e.records.streams, &export.ChangeStreams}} {
		if len(e.Tables) > 0 && len(list.records) > 0 && (list.to == &export.ChangeStreams || list.records[0] == first(e.records.views)) {
			continue // they may be about tables that are left out
		}
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

// first is the first of some records, or nil.
func first(records []*file.AvroRecord) *file.AvroRecord {
	if len(records) == 0 {
		return nil
	}
	return records[0]
}

// spannerObject writes the manifest of an object, and adds it to a list.
func (e *exporter) spannerObject(to *[]spannerObject, name string, m spannerManifest) error {
	*to = append(*to, spannerObject{Name: name, ManifestFile: name + "-manifest.json"})
	return writeJSON(filepath.Join(e.Dir, name+"-manifest.json"), m)
}
