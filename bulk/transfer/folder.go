package transfer

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
)

// Folder is a folder that Export, or Cloud Spanner, has written. OpenFolder has checked that the folder's files exist
// and lie within the folder.
type Folder struct {
	// Tables are ordered so that their rows can be written in this order. Each table comes after its parent, and after
	// the tables to which its foreign keys refer, unless the foreign keys form a cycle.
	Tables []FolderTable
	// Before holds the statements to run before rows are written. They create the tables and what the tables need.
	// After holds the statements to run when all rows are written. They create foreign keys, indexes and change
	// streams, because writing the rows would cost more if these existed already. They also create views and roles.
	Before, After []string
	// ProtoDescriptors holds the descriptors of the proto bundle that Before creates.
	ProtoDescriptors []byte
	// NotMade names the objects of the folder that the import does not create: models, property graphs, and functions
	// in Cloud Spanner's layout.
	NotMade []string
	// Others names objects that are not created, because they belong, or may belong, to tables that are not in the
	// folder.
	Others []string
}

// FolderTable is a table of a folder.
type FolderTable struct {
	Name    string
	Files   []string     // paths of the table's files, including the folder
	Reading file.Options // how to read the files
	Rows    int64        // how many rows all files have; unknownRows in Cloud Spanner's layout
	columns []ManifestColumn
	sums    []checksum // the checksums of the files, in the order of Files
}

const unknownRows = -1

// checksum holds the checksums that the manifest gives for a file. A field is "" if the manifest does not give it.
type checksum struct{ sha256, md5 string }

// OpenFolder reads the manifests of a folder. database is the id of the database into which the folder will be
// imported.
func OpenFolder(dir, database string) (f *Folder, err error) {
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	switch {
	case has(stateName) && !has(manifestName):
		return nil, fmt.Errorf("the export into %s is not complete: the same crowfoot export goes on with it", dir)
	case has(spannerExportName):
		f, err = openSpanner(dir, database)
	case has(manifestName):
		f, err = openExport(dir, database)
	default:
		return nil, fmt.Errorf("%s is a folder without %s: crowfoot export did not write it", dir, manifestName)
	}
	if err != nil {
		return nil, err
	}
	for _, text := range slices.Concat(f.Before, f.After) {
		if !defines(text) {
			return nil, fmt.Errorf("%s has a statement that no export writes: %.100s", dir, text)
		}
	}
	return f, nil
}

// openExport opens a folder that Export wrote in one of its file formats.
func openExport(dir, database string) (*Folder, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, manifestName)
	switch {
	case m.Format == SpannerExport:
		return nil, fmt.Errorf("%s is missing: %s says that the folder is in Cloud Spanner's layout", filepath.Join(dir, spannerExportName), name)
	case m.Query != "":
		return nil, fmt.Errorf("%s has the rows of a query, and not of a table: import its files into the table that is to have them, as by crowfoot import '%s' --table TABLE",
			dir, filepath.Join(dir, queryName+"-*."+string(m.Format)))
	}
	f := &Folder{ProtoDescriptors: m.ProtoDescriptors}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, t := range m.Tables {
		table, err := t.open(root, m.Format)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		f.Tables = append(f.Tables, table)
	}
	if err := m.checkOthers(dir); err != nil {
		return nil, err
	}
	f.define(m.DDL, database)
	return f, nil
}

// open checks that the files of a table exist and have the size that the manifest says.
func (t *ManifestTable) open(root *os.Root, format file.Format) (table FolderTable, err error) {
	table = FolderTable{Name: t.Name, Rows: t.Rows, columns: t.Columns, Reading: file.Options{Format: format}}
	if format == file.TBL { // TBL files have no header
		for _, c := range t.Columns {
			table.Reading.Columns = append(table.Reading.Columns, c.Name)
		}
	}
	for _, f := range t.Files {
		info, err := statIn(root, f.Name)
		if err != nil {
			return table, err
		}
		if info.Size() != f.Bytes {
			return table, fmt.Errorf("it says that the file %s has %d bytes, and it has %d: it was cut off, or changed, since it was exported", f.Name, f.Bytes, info.Size())
		}
		table.Files, table.sums = append(table.Files, filepath.Join(root.Name(), f.Name)), append(table.sums, checksum{sha256: f.SHA256})
	}
	return table, nil
}

// statIn returns information about a file in a folder. It returns an error for a name that leads out of the folder,
// even through a symbolic link.
func statIn(root *os.Root, name string) (fs.FileInfo, error) {
	if name != filepath.Base(name) || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%q is not the name of a file in the folder", name)
	}
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the file %s is missing", name)
	case err != nil:
		return nil, fmt.Errorf("the file %s: %w", name, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", name)
	}
	return info, nil
}

// exportedName matches the end of the name of a file that Export wrote.
var exportedName = regexp.MustCompile(`-[0-9]{5,}-of-[0-9]{5,}\.([a-z]+)$`)

// checkOthers returns an error if the folder has exported files that the manifest does not name, because an import
// would leave them out.
func (m *Manifest) checkOthers(dir string) error {
	named := map[string]bool{}
	for _, t := range m.Tables {
		for _, f := range t.Files {
			named[f.Name] = true
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if parts := exportedName.FindStringSubmatch(e.Name()); parts != nil && parts[1] == string(m.Format) && !named[e.Name()] {
			return fmt.Errorf("%s does not name the file %s: move it out of the folder if its rows are not wanted", filepath.Join(dir, manifestName), e.Name())
		}
	}
	return nil
}

// define distributes the statements in ddl, which define the exported database, to Before and After, and puts the
// tables in order. It leaves out statements about tables that are not in the folder. The parameter database is the id
// of the database into which the folder will be imported.
func (f *Folder) define(ddl []string, database string) {
	here, last, part := f.names(), -1, false
	for i, text := range ddl {
		if name, ok := strings.CutPrefix(first(definedBy(text)), "table "); ok {
			last, part = i, part || !here[name]
		}
	}
	f.order(ddl)
	var foreignKeys, after []string
	for i, text := range ddl {
		// The error is ignored, because the server may support statements that parseDDL cannot parse.
		statement, _ := parseDDL(text)
		switch s := statement.(type) {
		case *ast.AlterDatabase:
			f.Before = append(f.Before, ofDatabase(text, database))
			continue
		case *ast.CreateTable:
			if here[strings.ToLower(pathName(s.Name))] {
				table, later := withoutForeignKeys(text)
				f.Before, foreignKeys = append(f.Before, table), append(foreignKeys, later...)
			}
			continue
		case *ast.AlterTable:
			foreignKeys = append(foreignKeys, text)
			continue
		case *ast.CreateIndex:
			if here[strings.ToLower(pathName(s.TableName))] {
				after = append(after, text)
			}
			continue
		}
		switch {
		case i < last:
			f.Before = append(f.Before, text)
		case part:
			if names := madeBy(text); len(names) > 0 {
				f.Others = append(f.Others, names[0])
			}
		default:
			after = append(after, text)
		}
	}
	f.After = append(f.within(foreignKeys), after...)
}

// names returns the names of the tables, in lower case.
func (f *Folder) names() map[string]bool {
	names := map[string]bool{}
	for _, t := range f.Tables {
		names[strings.ToLower(t.Name)] = true
	}
	return names
}

// within leaves out each statement that adds a foreign key if one of its two tables is not in the folder. If the folder
// has the referring table, within names the foreign key in Others.
func (f *Folder) within(statements []string) (list []string) {
	here := f.names()
	for _, text := range statements {
		from, to := foreignKeyOf(text)
		switch {
		case from == "" || here[strings.ToLower(from)] && here[strings.ToLower(to)]:
			list = append(list, text)
		case here[strings.ToLower(from)]:
			f.Others = append(f.Others, "the foreign key of "+from+" to "+to)
		}
	}
	return list
}

// order puts each table after its parent and, as far as parents allow it, after the tables to which its foreign keys
// refer. Foreign keys may form a cycle. So order does not follow a foreign key to a table that it is just placing, nor
// to a descendant of such a table.
func (f *Folder) order(ddl []string) {
	parents, references := relations(ddl)
	tables := map[string]FolderTable{}
	for _, t := range f.Tables {
		tables[strings.ToLower(t.Name)] = t
	}
	var sorted []FolderTable
	visited, waiting := map[string]bool{}, map[string]bool{}
	waits := func(name string) bool {
		for range len(tables) {
			if waiting[name] {
				return true
			}
			if name = parents[name]; name == "" {
				return false
			}
		}
		return true // the parents form a cycle, which the server will report as an error
	}
	var add func(name string)
	add = func(name string) {
		t, ok := tables[name]
		if !ok || visited[name] {
			return
		}
		visited[name], waiting[name] = true, true
		add(parents[name])
		for _, to := range references[name] {
			if !waits(to) {
				add(to)
			}
		}
		waiting[name] = false
		sorted = append(sorted, t)
	}
	for _, t := range f.Tables {
		add(strings.ToLower(t.Name))
	}
	f.Tables = sorted
}

// Check compares the exported columns with the columns of the table into which they will be imported.
func (t *FolderTable) Check(table *bulk.TableInfo) error {
	for _, c := range t.columns {
		is, ok := table.Column(c.Name)
		switch {
		case !ok:
			return fmt.Errorf("table %s has no column %s, which was exported", table.Name, c.Name)
		case is.Generated:
			return fmt.Errorf("column %s of table %s is generated: the database computes it, and it takes no exported values", c.Name, table.Name)
		}
		if was, _, err := arrowtype.ParseDDL(c.Type); err != nil || !proto.Equal(was, is.Type) {
			return fmt.Errorf("column %s of table %s is %s, and %s was exported", c.Name, table.Name, is.DDL, c.Type)
		}
	}
	return nil
}

// Verify compares the files with their checksums, as far as these are known.
func (t *FolderTable) Verify(ctx context.Context) error {
	for i, name := range t.Files {
		if err := t.sums[i].verify(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (c checksum) verify(ctx context.Context, name string) error {
	if c == (checksum{}) {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	sum, kind, want := sha256.New(), "SHA-256", c.sha256
	if want == "" {
		sum, kind, want = md5.New(), "MD5", c.md5
	}
	if _, err := io.Copy(sum, contextReader{ctx, f}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	got := hex.EncodeToString(sum.Sum(nil))
	if c.sha256 == "" {
		got = base64.StdEncoding.EncodeToString(sum.Sum(nil))
	}
	if got != want {
		return fmt.Errorf("%s is not as it was exported: its %s sum is %s, and its manifest says %s (a file that was changed on purpose is imported by itself, with --table)", name, kind, got, want)
	}
	return nil
}

// contextReader is a reader that returns the context's error after the context has ended.
type contextReader struct {
	ctx  context.Context
	from io.Reader
}

func (r contextReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(b)
}
