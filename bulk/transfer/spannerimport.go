package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"
	"github.com/twmb/avro"

	"github.com/crowfoot-db/crowfoot/bulk/file"
)

// openSpanner opens a folder in the layout of Cloud Spanner's exports. If Export has written the folder and none of
// its tables is missing, openSpanner uses the statements of manifest.json, which restore the database completely.
func openSpanner(dir, database string) (*Folder, error) {
	var export spannerExport
	if err := readJSON(filepath.Join(dir, spannerExportName), &export); err != nil {
		return nil, err
	}
	if export.Dialect != "" && export.Dialect != "GOOGLE_STANDARD_SQL" {
		return nil, fmt.Errorf("%s is of the dialect %s, want GOOGLE_STANDARD_SQL", dir, export.Dialect)
	}
	s := &Folder{ProtoDescriptors: export.ProtoDescriptors}
	for _, f := range export.Functions {
		s.NotMade = append(s.NotMade, "function "+f.Name)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	tables := map[string]string{} // the CREATE TABLE statement of each table, by the table's name
	var schemas, sequences, places, indexes, foreignKeys, views, streams []string
	for i, o := range slices.Concat(export.Tables, export.ChangeStreams, export.Placements, export.Sequences) {
		t, err := o.files(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range t.Files {
			if _, err := statIn(root, filepath.Base(name)); err != nil {
				return nil, err
			}
		}
		header, err := file.ReadAvroHeader(t.Files[0])
		if err != nil {
			return nil, err
		}
		root := header.Schema.Root()
		kind := kindOf(root)
		if i >= len(export.Tables)+len(export.ChangeStreams)+len(export.Placements) {
			kind = "sequence"
		}
		switch kind {
		case "schema":
			schemas = append(schemas, "CREATE SCHEMA "+quoteName(o.Name))
		case "sequence":
			sequences = append(sequences, sequenceDDL(o.Name, root))
		case "placement":
			places = append(places, "CREATE PLACEMENT "+quoteName(o.Name)+optionsDDL(root.Props))
		case "view":
			views = append(views, viewDDL(o.Name, root))
		case "change stream":
			streams = append(streams, changeStreamDDL(o.Name, root))
		case "table":
			ddl, err := tableDDL(o.Name, root)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.Files[0], err)
			}
			if tables[o.Name] != "" {
				return nil, fmt.Errorf("%s names table %s twice", filepath.Join(dir, spannerExportName), o.Name)
			}
			tables[o.Name] = ddl
			s.Tables = append(s.Tables, t)
			indexes = append(indexes, numbered(root.Props, propIndex)...)
			foreignKeys = append(foreignKeys, numbered(root.Props, propForeignKey)...)
		default:
			s.NotMade = append(s.NotMade, kind+" "+o.Name)
		}
	}
	if whole, err := s.takeManifest(dir, database); whole || err != nil {
		return s, err
	}
	s.order(slices.Concat(slices.Collect(maps.Values(tables)), foreignKeys))
	s.Before = slices.Concat(export.before(database), schemas, places, sequences)
	for _, t := range s.Tables {
		s.Before = append(s.Before, tables[t.Name])
	}
	s.After = slices.Concat(indexes, s.within(foreignKeys), views, streams)
	return s, nil
}

// before returns the statements that set the database options and create the proto bundle. spanner-export.json itself
// contains these definitions. The definitions of tables and of other objects are in Avro schemas instead.
func (e *spannerExport) before(database string) (list []string) {
	for _, o := range e.DatabaseOptions {
		value := o.Value
		if strings.EqualFold(o.Type, "STRING") {
			value = token.QuoteSQLString(value)
		}
		list = append(list, "ALTER DATABASE "+quoteName(database)+" SET OPTIONS ("+o.Name+" = "+value+")")
	}
	if len(e.ProtoBundle) > 0 {
		list = append(list, "CREATE PROTO BUNDLE (`"+strings.Join(e.ProtoBundle, "`, `")+"`)")
	}
	return list
}

// takeManifest sets f.Before and f.After from the statements of manifest.json, if these statements define exactly the
// tables of the folder. The result whole is true if it has set them.
func (f *Folder) takeManifest(dir, database string) (whole bool, err error) {
	m, err := readManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || m.Format != SpannerExport {
		return false, err
	}
	if tables := tablesOf(m.DDL); len(tables) != len(f.Tables) || slices.ContainsFunc(f.Tables, func(t FolderTable) bool { return !tables[strings.ToLower(t.Name)] }) {
		return false, nil
	}
	f.define(m.DDL, database)
	return true, nil
}

// files finds the files of an object, either by the object's manifest or by file patterns.
func (o spannerObject) files(dir string) (t FolderTable, err error) {
	t.Name, t.Rows, t.Reading.Format = o.Name, unknownRows, file.Avro
	var m spannerManifest
	if o.ManifestFile != "" {
		err = readJSON(filepath.Join(dir, filepath.Base(o.ManifestFile)), &m)
	}
	if err != nil && (len(o.DataFiles) == 0 || !errors.Is(err, fs.ErrNotExist)) {
		return t, err
	}
	for _, f := range m.Files {
		t.Files, t.sums = append(t.Files, filepath.Join(dir, filepath.Base(f.Name))), append(t.sums, checksum{md5: f.MD5})
	}
	for _, glob := range o.DataFiles {
		names, err := file.Glob([]string{filepath.Join(dir, filepath.Base(glob))})
		if err != nil {
			return t, err
		}
		for _, name := range names {
			if !slices.Contains(t.Files, name) {
				t.Files, t.sums = append(t.Files, name), append(t.sums, checksum{})
			}
		}
	}
	if len(t.Files) == 0 {
		return t, fmt.Errorf("%s names no file of %s", filepath.Join(dir, spannerExportName), o.Name)
	}
	return t, nil
}

func property(props map[string]any, name string) string {
	text, _ := props[name].(string)
	return text
}

// numbered returns the values of the properties that are called name0, name1 and so on, where name is the parameter.
func numbered(props map[string]any, name string) (list []string) {
	for i := 0; ; i++ {
		text, ok := props[name+strconv.Itoa(i)].(string)
		if !ok {
			return list
		}
		list = append(list, text)
	}
}

// kindOf returns the kind of object that an Avro schema defines.
func kindOf(root *avro.SchemaNode) string {
	entity := property(root.Props, propEntity)
	switch {
	case entity == entityNamedSchema:
		return "schema"
	case entity != "":
		return strings.ToLower(entity)
	case root.Props[propForClause] != nil:
		return "change stream"
	case root.Props[propViewQuery] != nil:
		return "view"
	}
	return "table"
}

func viewDDL(name string, root *avro.SchemaNode) string {
	security := property(root.Props, propViewSecurity)
	if security == "" {
		security = "INVOKER"
	}
	return "CREATE VIEW " + quoteName(name) + " SQL SECURITY " + security + " AS " + property(root.Props, propViewQuery)
}

// sequenceDDL returns the CREATE SEQUENCE statement for an Avro schema. If the Avro schema has options of the sequence,
// the statement has the same options. Otherwise it has clauses.
func sequenceDDL(name string, root *avro.SchemaNode) string {
	ddl := "CREATE SEQUENCE " + quoteName(name)
	if list := numbered(root.Props, propSequenceOption); len(list) > 0 {
		return ddl + " OPTIONS (" + strings.Join(list, ", ") + ")"
	}
	return strings.TrimSpace(ddl + " " + sequenceClauses(root.Props))
}

// sequenceClauses returns the clauses of a sequence or an identity column. In Spanner's exports, "null" means that a
// property is not set.
func sequenceClauses(props map[string]any) string {
	set := func(name string) (string, bool) {
		text := property(props, name)
		return text, text != "" && text != "null"
	}
	var clauses []string
	if _, ok := set(propSequenceKind); ok {
		clauses = append(clauses, "BIT_REVERSED_POSITIVE")
	}
	least, skips := set(propSkipMin)
	if most, ok := set(propSkipMax); ok && skips {
		clauses = append(clauses, "SKIP RANGE "+least+", "+most)
	}
	if start, ok := set(propCounterStart); ok {
		clauses = append(clauses, "START COUNTER WITH "+start)
	}
	return strings.Join(clauses, " ")
}

func changeStreamDDL(name string, root *avro.SchemaNode) string {
	ddl := strings.TrimSpace("CREATE CHANGE STREAM " + quoteName(name) + " " + property(root.Props, propForClause))
	return ddl + optionsDDL(root.Props)
}

func optionsDDL(props map[string]any) string {
	list := numbered(props, propOption)
	if len(list) == 0 {
		return ""
	}
	return " OPTIONS (" + strings.Join(list, ", ") + ")"
}

// protoType matches a PROTO or ENUM type as Cloud Spanner's exports write it, such as PROTO<a.B>. In DDL, the type is
// only the name a.B.
var protoType = regexp.MustCompile(`\b(?:PROTO|ENUM)<([^<>]+)>`)

// tableDDL returns the CREATE TABLE statement for an Avro schema.
func tableDDL(name string, root *avro.SchemaNode) (string, error) {
	var parts []string
	columns, err := file.AvroColumns(root)
	if err != nil {
		return "", err
	}
	for _, f := range root.Fields {
		part := quoteName(f.Name) + " "
		if f.Type.Type == "null" {
			part += property(f.Props, propSQLType)
			if property(f.Props, propNotNull) == "true" {
				part += " NOT NULL"
			}
			part += " AS (" + property(f.Props, propGenerated) + ")"
			if property(f.Props, propStored) == "true" {
				part += " STORED"
			}
		} else {
			part += protoType.ReplaceAllString(columns[f.Name], "$1")
			if property(f.Props, propIdentity) == "true" {
				part += " GENERATED BY DEFAULT AS IDENTITY"
				if clauses := sequenceClauses(f.Props); clauses != "" {
					part += " (" + clauses + ")"
				}
			}
			if text := property(f.Props, propDefault); text != "" {
				part += " DEFAULT (" + text + ")"
			}
		}
		if property(f.Props, propPlacementKey) == "true" {
			part += " PLACEMENT KEY"
		}
		if property(f.Props, propHidden) == "true" {
			part += " HIDDEN"
		}
		parts = append(parts, part+optionsDDL(f.Props))
	}
	parts = append(parts, numbered(root.Props, propCheck)...)
	ddl := "CREATE TABLE " + quoteName(name) + " (\n  " + strings.Join(parts, ",\n  ") + "\n) PRIMARY KEY (" +
		strings.Join(numbered(root.Props, propPrimaryKey+"_"), ", ") + ")"
	if parent := property(root.Props, propParent); parent != "" {
		if property(root.Props, propInterleaveType) == "IN" {
			return ddl + ",\n  INTERLEAVE IN " + quoteName(parent), nil
		}
		ddl += ",\n  INTERLEAVE IN PARENT " + quoteName(parent)
		if property(root.Props, propOnDelete) == "cascade" {
			ddl += " ON DELETE CASCADE"
		}
	}
	return ddl, nil
}
