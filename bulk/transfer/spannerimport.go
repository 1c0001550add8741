package transfer

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// SpannerFolder is a folder in the layout of Cloud Spanner's exports.
type SpannerFolder struct {
	// Tables, each behind the one in which it is interleaved.
	Tables []SpannerTable
	// Before are the statements that make all that comes before rows, tables last, and After those that make foreign keys, indexes and change
	// streams, which cost less when the rows are there, views and roles.
	Before, After []string
	// ProtoDescriptors are those of the proto bundle that Before makes.
	ProtoDescriptors []byte
	// LeftOut names what the folder has and Crowfoot does not make: models, property graphs.
	LeftOut []string
}

// SpannerTable is a table of a folder.
type SpannerTable struct {
	Name   string
	Parent string   // in which it is interleaved, or ""
	Files  []string // with their folder
	sums   []string // MD5, or "" where there is none
	ddl    string
}

// IsSpannerFolder says whether a directory has Cloud Spanner's layout.
func IsSpannerFolder(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, spannerExportName))
	return err == nil
}

// OpenSpannerFolder reads what a folder has; database is the id of the one that it goes into. If Export wrote the folder, and all tables are in
// it, the statements are those of its manifest, which make the database as it was.
func OpenSpannerFolder(dir, database string) (*SpannerFolder, error) {
	var export spannerExport
	if err := readJSON(filepath.Join(dir, spannerExportName), &export); err != nil {
		return nil, err
	}
	if export.Dialect != "" && export.Dialect != "GOOGLE_STANDARD_SQL" {
		return nil, fmt.Errorf("%s is of the dialect %s, want GOOGLE_STANDARD_SQL", dir, export.Dialect)
	}
	s := &SpannerFolder{ProtoDescriptors: export.ProtoDescriptors}
	for _, f := range export.Functions {
		s.LeftOut = append(s.LeftOut, "function "+f.Name)
	}
	var schemas, sequences, places, indexes, foreignKeys, views, streams []string
	for i, o := range slices.Concat(export.Tables, export.ChangeStreams, export.Placements, export.Sequences) {
		t, err := o.files(dir)
		if err != nil {
			return nil, err
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
			t.Parent = property(root.Props, propParent)
			t.ddl = ddl
			s.Tables = append(s.Tables, t)
			indexes = append(indexes, numbered(root.Props, propIndex)...)
			foreignKeys = append(foreignKeys, numbered(root.Props, propForeignKey)...)
		default:
			s.LeftOut = append(s.LeftOut, kind+" "+o.Name)
		}
	}
	s.Tables = parentsFirst(s.Tables)
	if whole, err := s.takeManifest(dir, database); whole || err != nil {
		return s, err
	}
	s.Before = slices.Concat(export.before(database), schemas, places, sequences)
	for _, t := range s.Tables {
		s.Before = append(s.Before, t.ddl)
	}
	s.After = slices.Concat(indexes, foreignKeys, views, streams)
	return s, nil
}

// before are the statements that make what spanner-export.json itself has.
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

// takeManifest takes the statements of manifest.json if they define the tables of the folder, and no others.
func (s *SpannerFolder) takeManifest(dir, database string) (whole bool, err error) {
	var m Manifest
	if err := readJSON(filepath.Join(dir, manifestName), &m); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	tables, last := []string{}, -1
	for i, text := range m.DDL {
		if name, ok := strings.CutPrefix(first(definedBy(text)), "table "); ok {
			tables, last = append(tables, name), i
		}
	}
	var here []string
	for _, t := range s.Tables {
		here = append(here, strings.ToLower(t.Name))
	}
	slices.Sort(tables)
	if slices.Sort(here); m.Format != SpannerExport || !slices.Equal(tables, here) {
		return false, nil
	}
	for _, text := range m.DDL[:last+1] {
		made, later := withoutForeignKeys(ofDatabase(text, database))
		s.Before, s.After = append(s.Before, made), append(s.After, later...)
	}
	s.After = append(s.After, m.DDL[last+1:]...)
	return true, nil
}

func readJSON(name string, v any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// files finds the files of an object, by its manifest or by globs.
func (o spannerObject) files(dir string) (t SpannerTable, err error) {
	t.Name = o.Name
	var m spannerManifest
	if o.ManifestFile != "" {
		err = readJSON(filepath.Join(dir, filepath.Base(o.ManifestFile)), &m)
	}
	if err != nil && (len(o.DataFiles) == 0 || !errors.Is(err, fs.ErrNotExist)) {
		return t, err
	}
	for _, f := range m.Files {
		t.Files, t.sums = append(t.Files, filepath.Join(dir, filepath.Base(f.Name))), append(t.sums, f.MD5)
	}
	for _, glob := range o.DataFiles {
		names, err := file.Glob([]string{filepath.Join(dir, filepath.Base(glob))})
		if err != nil {
			return t, err
		}
		for _, name := range names {
			if !slices.Contains(t.Files, name) {
				t.Files, t.sums = append(t.Files, name), append(t.sums, "")
			}
		}
	}
	if len(t.Files) == 0 {
		return t, fmt.Errorf("%s names no file of %s", filepath.Join(dir, spannerExportName), o.Name)
	}
	return t, nil
}

// Verify compares the files with their checksums.
func (t SpannerTable) Verify() error {
	for i, name := range t.Files {
		if t.sums[i] == "" {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		sum := md5.New()
		_, err = io.Copy(sum, f)
		f.Close()
		if err != nil {
			return err
		}
		if got := base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != t.sums[i] {
			return fmt.Errorf("%s is damaged: its MD5 sum is %s, and the manifest says %s", name, got, t.sums[i])
		}
	}
	return nil
}

// parentsFirst puts each table behind the one in which it is interleaved.
func parentsFirst(tables []SpannerTable) (sorted []SpannerTable) {
	in := map[string]bool{}
	for len(sorted) < len(tables) {
		before := len(sorted)
		for _, t := range tables {
			missing := t.Parent != "" && !in[t.Parent] && slices.ContainsFunc(tables, func(p SpannerTable) bool { return p.Name == t.Parent })
			if !in[t.Name] && !missing {
				in[t.Name] = true
				sorted = append(sorted, t)
			}
		}
		if len(sorted) == before {
			return tables // a circle: the server says what is wrong with it
		}
	}
	return sorted
}

func property(props map[string]any, name string) string {
	text, _ := props[name].(string)
	return text
}

// numbered are the properties whose names end with 0, 1 and so on.
func numbered(props map[string]any, name string) (list []string) {
	for i := 0; ; i++ {
		text, ok := props[name+strconv.Itoa(i)].(string)
		if !ok {
			return list
		}
		list = append(list, text)
	}
}

// kindOf tells what a schema is of.
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

// sequenceDDL makes a sequence by options if it was made by these, and otherwise by clauses.
func sequenceDDL(name string, root *avro.SchemaNode) string {
	ddl := "CREATE SEQUENCE " + quoteName(name)
	if list := numbered(root.Props, propSequenceOption); len(list) > 0 {
		return ddl + " OPTIONS (" + strings.Join(list, ", ") + ")"
	}
	return strings.TrimSpace(ddl + " " + sequenceClauses(root.Props))
}

// sequenceClauses are the clauses of a sequence or an identity column. Spanner's exports say "null" for what is not set.
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

// protoType is a PROTO or ENUM type as the layout has it; DDL has its name alone.
var protoType = regexp.MustCompile(`\b(?:PROTO|ENUM)<([^<>]+)>`)

// tableDDL is the CREATE TABLE of a schema.
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
