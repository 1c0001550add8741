package transfer_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
	"github.com/crowfoot-db/crowfoot/clienttest"
)

// TestForeignFolders checks that a folder that no export could have written is refused before anything is sent to the
// server.
func TestForeignFolders(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("K\n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const name = "T-00000-of-00001.csv"
	for what, c := range map[string]struct {
		change func(m *transfer.Manifest, dir string)
		want   string
	}{
		"as it was exported": {func(*transfer.Manifest, string) {}, ""},
		"an older manifest":  {func(m *transfer.Manifest, _ string) { m.Version = 0 }, ""},
		"other files beside": {func(_ *transfer.Manifest, dir string) { os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600) }, ""},
		"a link within": {func(_ *transfer.Manifest, dir string) {
			os.Rename(filepath.Join(dir, name), filepath.Join(dir, "data"))
			os.Symlink("data", filepath.Join(dir, name))
		}, ""},
		"a later version":   {func(m *transfer.Manifest, _ string) { m.Version = 2 }, "manifest.json: its version is 2, and this crowfoot knows those up to 1"},
		"another format":    {func(m *transfer.Manifest, _ string) { m.Format = "xls" }, `its format is "xls": want one of [csv`},
		"the wrong layout":  {func(m *transfer.Manifest, _ string) { m.Format = transfer.SpannerExport }, "spanner-export.json is missing"},
		"a name above":      {func(m *transfer.Manifest, _ string) { m.Tables[0].Files[0].Name = "../secret" }, `"../secret" is not the name of a file in the folder`},
		"the folder above":  {func(m *transfer.Manifest, _ string) { m.Tables[0].Files[0].Name = ".." }, `".." is not the name of a file in the folder`},
		"an absolute name":  {func(m *transfer.Manifest, _ string) { m.Tables[0].Files[0].Name = outside }, "is not the name of a file in the folder"},
		"no name":           {func(m *transfer.Manifest, _ string) { m.Tables[0].Files[0].Name = "" }, `"" is not the name of a file in the folder`},
		"the folder itself": {func(m *transfer.Manifest, _ string) { m.Tables[0].Files[0].Name = "." }, ". is not a file"},
		"a link that leaves": {func(_ *transfer.Manifest, dir string) {
			os.Remove(filepath.Join(dir, name))
			os.Symlink(outside, filepath.Join(dir, name))
		}, "path escapes"},
		"a folder as a file": {func(_ *transfer.Manifest, dir string) {
			os.Remove(filepath.Join(dir, name))
			os.Mkdir(filepath.Join(dir, name), 0o700)
		}, "is not a file"},
		"a file twice": {func(m *transfer.Manifest, _ string) {
			m.Tables = append(m.Tables, transfer.ManifestTable{Name: "U", Rows: 2, Files: m.Tables[0].Files})
		}, "it names the file T-00000-of-00001.csv twice"},
		"a table twice": {func(m *transfer.Manifest, _ string) {
			m.Tables = append(m.Tables, transfer.ManifestTable{Name: "t"})
		}, "it names table t twice"},
		"a missing file": {func(_ *transfer.Manifest, dir string) { os.Remove(filepath.Join(dir, name)) }, "the file T-00000-of-00001.csv is missing"},
		"a file cut off": {func(_ *transfer.Manifest, dir string) { os.Truncate(filepath.Join(dir, name), 3) }, "has 6 bytes, and it has 3: it was cut off"},
		"a file that is new": {func(_ *transfer.Manifest, dir string) {
			os.WriteFile(filepath.Join(dir, "T-00001-of-00002.csv"), nil, 0o600)
		}, "manifest.json does not name the file T-00001-of-00002.csv"},
		"a sum of rows":       {func(m *transfer.Manifest, _ string) { m.Tables[0].Rows = 5 }, "it says that table T has 5 rows, and its 1 files have 2"},
		"a negative number":   {func(m *transfer.Manifest, _ string) { m.Tables[0].Files[0].Rows, m.Tables[0].Rows = -2, -2 }, "has -2 rows and 6 bytes"},
		"a table of no files": {func(m *transfer.Manifest, _ string) { m.Tables[0].Files, m.Tables[0].Rows = nil, 0 }, "table T has 0 rows, and its 0 files have 0"},
		"a query":             {func(m *transfer.Manifest, _ string) { m.Query = "SELECT 1" }, "has the rows of a query"},
		"a statement that drops": {func(m *transfer.Manifest, _ string) { m.DDL = append(m.DDL, "DROP TABLE Other") },
			"has a statement that no export writes: DROP TABLE Other"},
		"a statement that alters": {func(m *transfer.Manifest, _ string) { m.DDL = append(m.DDL, "ALTER TABLE Other DROP COLUMN V") },
			"has a statement that no export writes: ALTER TABLE"},
		"a statement that replaces": {func(m *transfer.Manifest, _ string) {
			m.DDL = append(m.DDL, "CREATE OR REPLACE VIEW V SQL SECURITY INVOKER AS SELECT 1 AS X")
		}, "has a statement that no export writes: CREATE OR REPLACE"},
		"no manifest": {func(_ *transfer.Manifest, dir string) { os.Remove(filepath.Join(dir, "manifest.json")) }, "is a folder without manifest.json: crowfoot export did not write it"},
		"an export that was interrupted": {func(_ *transfer.Manifest, dir string) {
			os.Rename(filepath.Join(dir, "manifest.json"), filepath.Join(dir, "export.state"))
		}, "is not complete: the same crowfoot export goes on with it"},
		"a manifest cut off": {func(_ *transfer.Manifest, dir string) { os.Truncate(filepath.Join(dir, "manifest.json"), 30) }, "manifest.json is damaged: unexpected end of JSON input"},
		"a huge manifest":    {func(_ *transfer.Manifest, dir string) { os.Truncate(filepath.Join(dir, "manifest.json"), 1<<40) }, "manifest.json has more than 256 MiB"},
		"a deep manifest": {func(_ *transfer.Manifest, dir string) {
			os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(`{"x":`+strings.Repeat("[", 1<<20)), 0o600)
		}, "exceeded max depth"},
	} {
		dir := t.TempDir()
		m := &transfer.Manifest{Version: 1, Format: file.CSV, DDL: []string{"CREATE TABLE T (K INT64) PRIMARY KEY (K)"}, Tables: []transfer.ManifestTable{{Name: "T", Rows: 2,
			Columns: []transfer.ManifestColumn{{Name: "K", Type: "INT64"}}, Files: []transfer.ManifestFile{{Name: name, Rows: 2, Bytes: 6, SHA256: "4f3b0e"}}}}}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("K\n1\n2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		write := func() {
			text, err := json.Marshal(m)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		write()
		was := fmt.Sprint(*m)
		if c.change(m, dir); fmt.Sprint(*m) != was {
			write()
		}
		folder, err := transfer.OpenFolder(dir, "d")
		switch {
		case c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", what, err, c.want)
		case err == nil:
			if err := folder.Tables[0].Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "is not as it was exported: its SHA-256 sum is ") {
				t.Errorf("%s: a wrong checksum: %v", what, err)
			}
		}
	}
}

// TestFolderChecksTypes checks that a table is refused if its columns differ from the exported ones.
func TestFolderChecksTypes(t *testing.T) {
	client := clienttest.Connect(t, "CREATE TABLE T (K INT64, S STRING(10), A ARRAY<STRING(MAX)>, G INT64 AS (K) STORED) PRIMARY KEY (K)")
	table, err := bulk.Describe(t.Context(), client, "T")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ column, kind, want string }{
		{"s", "STRING(MAX)", ""},
		{"A", "ARRAY<STRING(5)>", ""},
		{"K", "FLOAT64", "column K of table T is INT64, and FLOAT64 was exported"},
		{"A", "ARRAY<BYTES(MAX)>", "column A of table T is ARRAY<STRING(MAX)>, and ARRAY<BYTES(MAX)> was exported"},
		{"A", "STRING(MAX)", "and STRING(MAX) was exported"},
		{"K", "nonsense", "and nonsense was exported"},
		{"N", "INT64", "table T has no column N, which was exported"},
		{"G", "INT64", "column G of table T is generated"},
	} {
		dir := t.TempDir()
		text := fmt.Sprintf(`{"format":"csv","tables":[{"name":"T","columns":[{"name":%q,"type":%q}],"files":[{"name":"f"}]}]}`, c.column, c.kind)
		if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		folder, err := transfer.OpenFolder(dir, "d")
		if err != nil {
			t.Fatal(err)
		}
		if err := folder.Tables[0].Check(table); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %s", c.column, c.kind, err, c.want)
		}
	}
}

// TestFolderOrder checks the order of tables. Each table must come after its parent, even if foreign keys form cycles.
// If parents allow it, the table must also come after the tables to which its foreign keys refer. For a folder with
// only some of a database's tables, statements about the other tables must be left out.
func TestFolderOrder(t *testing.T) {
	ddl := []string{
		"CREATE TABLE A (K INT64, B INT64, FOREIGN KEY (B) REFERENCES B (K)) PRIMARY KEY (K)",
		"CREATE TABLE A1 (K INT64, L INT64) PRIMARY KEY (K, L), INTERLEAVE IN PARENT A",
		"CREATE TABLE A2 (K INT64, L INT64) PRIMARY KEY (K, L), INTERLEAVE IN PARENT A1",
		"CREATE INDEX OnA ON A(B)",
		"CREATE TABLE B (K INT64, C INT64, L INT64) PRIMARY KEY (K)",
		"CREATE TABLE C (K INT64, CONSTRAINT OfItself FOREIGN KEY (K) REFERENCES C (K)) PRIMARY KEY (K)",
		"ALTER TABLE B ADD CONSTRAINT OfC FOREIGN KEY (C) REFERENCES C (K)",
		"ALTER TABLE B ADD CONSTRAINT OfA2 FOREIGN KEY (K, C, L) REFERENCES A2 (K, L, L)",
		"CREATE INDEX OnB ON B(C)",
		"CREATE VIEW V SQL SECURITY INVOKER AS SELECT a.K FROM A AS a",
		"CREATE CHANGE STREAM S FOR ALL",
		"CREATE ROLE r",
		"GRANT SELECT ON TABLE A TO ROLE r",
	}
	for _, c := range []struct{ tables, order, others string }{
		{"A A1 A2 B C", "C B A A1 A2", ""},
		{"A2 A1 A B C", "C B A A1 A2", ""},
		{"B A2 A1 C A", "C A A1 A2 B", ""},
		{"B C", "C B", "view V; change stream S; role r; the foreign key of B to A2"},
		{"A", "A", "view V; change stream S; role r; the foreign key of A to B"},
	} {
		m := transfer.Manifest{Format: file.CSV, DDL: ddl}
		dir := t.TempDir()
		for name := range strings.FieldsSeq(c.tables) {
			m.Tables = append(m.Tables, transfer.ManifestTable{Name: name, Files: []transfer.ManifestFile{{Name: name}}})
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		text, err := json.Marshal(m)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		folder, err := transfer.OpenFolder(dir, "d")
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, table := range folder.Tables {
			order = append(order, table.Name)
		}
		if got := strings.Join(order, " "); got != c.order {
			t.Errorf("%s: %s, want %s", c.tables, got, c.order)
		}
		if got := strings.Join(folder.Others, "; "); got != c.others {
			t.Errorf("%s leaves out %s, want %s", c.tables, got, c.others)
		}
		for _, text := range folder.Before {
			if strings.Contains(text, "FOREIGN KEY") || strings.Contains(text, "INDEX") {
				t.Errorf("before the rows: %s", text)
			}
		}
		if n := len(slices.Concat(folder.Before, folder.After)); c.others == "" && n != len(ddl)+2 {
			t.Errorf("%d statements of %d", n, len(ddl)+2)
		}
	}
}
