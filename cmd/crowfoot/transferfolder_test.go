package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	admin "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// edgesDDL creates a table with columns of every type. It also creates tables with features that the tables of wholeDDL
// lack, such as keywords as names, or foreign keys that form a circle.
var edgesDDL = []string{
	"CREATE TABLE Edges (K INT64, B BOOL, I INT64, F FLOAT64, G FLOAT32, N NUMERIC, S STRING(MAX), Y BYTES(MAX), D DATE, T TIMESTAMP, J JSON, U UUID, P shop.Item, E shop.Kind, " +
		"AB ARRAY<BOOL>, AI ARRAY<INT64>, AF ARRAY<FLOAT64>, AG ARRAY<FLOAT32>, AN ARRAY<NUMERIC>, AX ARRAY<STRING(MAX)>, AY ARRAY<BYTES(MAX)>, AD ARRAY<DATE>, AZ ARRAY<TIMESTAMP>, " +
		"AJ ARRAY<JSON>, AU ARRAY<UUID>, AP ARRAY<shop.Item>, AE ARRAY<shop.Kind>, H INT64 HIDDEN, L INT64 AS (LENGTH(S)) HIDDEN) PRIMARY KEY (K)",
	"CREATE TABLE music.`Order` (`Select` INT64 NOT NULL, `From` STRING(MAX)) PRIMARY KEY (`Select` DESC)",
	"CREATE TABLE music.`Group` (`Select` INT64 NOT NULL, `By` STRING(MAX) NOT NULL) PRIMARY KEY (`Select` DESC, `By`), INTERLEAVE IN PARENT music.`Order` ON DELETE CASCADE",
	"CREATE TABLE Ones (S STRING(MAX)) PRIMARY KEY (S)",
	"CREATE TABLE Floats (F FLOAT64, G FLOAT32) PRIMARY KEY (F, G DESC)",
	"CREATE TABLE Stamped (K INT64, Since TIMESTAMP OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (K)",
	"CREATE TABLE Big (K INT64, Y BYTES(MAX)) PRIMARY KEY (K)",
	"CREATE TABLE CircleA (K INT64, R INT64) PRIMARY KEY (K)",
	"CREATE TABLE CircleB (K INT64, R INT64, FOREIGN KEY (R) REFERENCES CircleA (K)) PRIMARY KEY (K)",
	"ALTER TABLE CircleA ADD CONSTRAINT ToB FOREIGN KEY (R) REFERENCES CircleB (K)",
	"ALTER TABLE CircleA ADD CONSTRAINT ToItself FOREIGN KEY (R) REFERENCES CircleA (K)",
}

// edges has values for the columns of the table Edges, as SQL. Each value is written in a row of its own, whose other
// columns are NULL.
var edges = map[string][]string{
	"B":  {"TRUE", "FALSE"},
	"I":  {"0", "-9223372036854775808", "9223372036854775807"},
	"F":  {"0.0", "-0.0", "1.7976931348623157e308", "5e-324", "CAST('nan' AS FLOAT64)", "CAST('inf' AS FLOAT64)", "CAST('-inf' AS FLOAT64)", "0.1"},
	"G":  {"CAST(0 AS FLOAT32)", "CAST(-0.0 AS FLOAT32)", "CAST(3.4028235e38 AS FLOAT32)", "CAST(1e-45 AS FLOAT32)", "CAST('nan' AS FLOAT32)", "CAST('-inf' AS FLOAT32)", "CAST(0.1 AS FLOAT32)"},
	"N":  {"NUMERIC '0'", "NUMERIC '99999999999999999999999999999.999999999'", "NUMERIC '-99999999999999999999999999999.999999999'", "NUMERIC '0.000000001'"},
	"S":  {"''", "'NULL'", "'null'", `'\\N'`, `'"'`, `'""'`, "','", "'|'", `'\\'`, `'\\n'`, `'\n'`, `'\r'`, `'\r\n'`, `'\t'`, "' a '", "'é 🐦'", `'\x00\x01'`, `'\uFEFF'`, `'a"b,c\n|\\'`},
	"Y":  {"b''", `b'\x00\xff'`, `b'\n'`},
	"D":  {"DATE '0001-01-01'", "DATE '1969-12-31'", "DATE '2024-02-29'", "DATE '9999-12-31'"},
	"T":  {"TIMESTAMP '1969-12-31T23:59:59.999999999Z'", "TIMESTAMP '0001-01-01T00:00:00Z'", "TIMESTAMP '9999-12-31T23:59:59.999999999Z'"},
	"J":  {"JSON 'null'", "JSON '1'", `JSON '"a\\n\\u0000"'`, `JSON '{"a":[1,null,{"b":"é|,\\\\\\""}]}'`, "JSON '[]'", "JSON '1.7976931348623157e308'"},
	"U":  {"CAST('00000000-0000-0000-0000-000000000000' AS UUID)", "CAST('ffffffff-ffff-ffff-ffff-ffffffffffff' AS UUID)"},
	"P":  {"NEW shop.Item(7 AS id)", "NEW shop.Item()"},
	"E":  {"CAST('BOOK' AS shop.Kind)", "CAST(0 AS shop.Kind)"},
	"H":  {"1"},
	"AB": {"ARRAY<BOOL>[]", "[TRUE, NULL, FALSE]"}, "AI": {"ARRAY<INT64>[]", "[NULL, -9223372036854775808]", "[NULL]"}, "AF": {"ARRAY<FLOAT64>[]", "[CAST('nan' AS FLOAT64), NULL, 1.5, -0.0]"},
	"AG": {"ARRAY<FLOAT32>[]", "[CAST('-inf' AS FLOAT32), NULL, CAST(0.1 AS FLOAT32)]"}, "AN": {"ARRAY<NUMERIC>[]", "[NUMERIC '-0.000000001', NULL]"}, "AX": {"ARRAY<STRING>[]", "['']", `['', NULL, 'a\r\n"|,\\', '[]', 'null']`},
	"AY": {"ARRAY<BYTES>[]", `[b'', b'\x00\xff', NULL]`}, "AD": {"ARRAY<DATE>[]", "[DATE '0001-01-01', NULL]"}, "AZ": {"ARRAY<TIMESTAMP>[]", "[TIMESTAMP '0001-01-01T10:00:00.123456789Z', NULL]"},
	"AJ": {"ARRAY<JSON>[]", `[JSON '{"a":"\\n"}', JSON 'null', NULL]`}, "AU": {"ARRAY<UUID>[]", "[CAST('4192bff0-e1e0-43ce-a4db-912808c32493' AS UUID), NULL]"},
	"AP": {"ARRAY<shop.Item>[]", "[NEW shop.Item(7 AS id), NULL, NEW shop.Item()]"}, "AE": {"ARRAY<shop.Kind>[]", "[CAST('BOOK' AS shop.Kind), NULL]"},
}

// fillWhole writes rows into tables of wholeDDL and edgesDDL. It leaves some of these tables empty.
func fillWhole(t *testing.T, client *spanner.Client) {
	t.Helper()
	k := 0
	for _, column := range slices.Sorted(func(yield func(string) bool) {
		for c := range edges {
			if !yield(c) {
				return
			}
		}
	}) {
		for _, value := range edges[column] {
			k++
			update(t, client, fmt.Sprintf("INSERT INTO Edges (K, %s) VALUES (%d, %s)", column, k, value))
		}
	}
	for _, sql := range []string{
		"INSERT INTO Labels (Name, Item, Kind, Kinds, Place) SELECT CONCAT('n', CAST(x AS STRING)), NEW shop.Item(x AS id), CAST('BOOK' AS shop.Kind), [CAST('BOOK' AS shop.Kind), NULL], [CAST(1.5 AS FLOAT32), CAST(2 AS FLOAT32)] FROM UNNEST(GENERATE_ARRAY(1, 50)) AS x",
		"INSERT INTO music.Played (Label) SELECT Id FROM Labels",
		"INSERT INTO Keyed (A, Item) VALUES ('a', NEW shop.Item(7 AS id)), ('b', NULL), ('', NULL)",
		"INSERT INTO Spread (K, Place) VALUES (1, 'far')",
		"INSERT INTO music.`Order` (`Select`, `From`) VALUES (1, ''), (2, NULL)",
		"INSERT INTO music.`Group` (`Select`, `By`) VALUES (1, ''), (1, 'x'), (2, '')",
		"INSERT INTO Ones (S) VALUES (NULL), (''), ('null'), ('\\n')",
		"INSERT INTO Floats (F, G) VALUES (NULL, NULL), (CAST('nan' AS FLOAT64), CAST('-inf' AS FLOAT32)), (0, 0), (0.1, CAST(0.1 AS FLOAT32))",
		"INSERT INTO Stamped (K, Since) VALUES (1, PENDING_COMMIT_TIMESTAMP()), (2, TIMESTAMP '0001-01-01T00:00:00.000000001Z'), (3, NULL)",
		"INSERT INTO CircleA (K, R) VALUES (1, NULL), (2, NULL)",
		"INSERT INTO CircleB (K, R) VALUES (1, 2), (2, 1)",
		"UPDATE CircleA SET R = 3 - K WHERE TRUE",
	} {
		update(t, client, sql)
	}
	big := []*spanner.Mutation{spanner.Insert("Big", []string{"K", "Y"}, []any{1, bytes.Repeat([]byte{0, 255}, 5<<20)})}
	if _, err := client.Apply(t.Context(), big); err != nil {
		t.Fatal(err)
	}
}

// allRows returns the rows of all tables in the encoding of Spanner's API, without generated columns.
func allRows(t *testing.T, client *spanner.Client) (rows []string) {
	t.Helper()
	columns := map[string][]string{}
	names := spanner.NewStatement("SELECT IF(c.TABLE_SCHEMA = '', c.TABLE_NAME, CONCAT(c.TABLE_SCHEMA, '.', c.TABLE_NAME)), c.COLUMN_NAME FROM INFORMATION_SCHEMA.COLUMNS c " +
		"JOIN INFORMATION_SCHEMA.TABLES t USING (TABLE_SCHEMA, TABLE_NAME) WHERE t.TABLE_TYPE = 'BASE TABLE' AND c.TABLE_SCHEMA NOT IN ('INFORMATION_SCHEMA', 'SPANNER_SYS')")
	err := client.Single().Query(t.Context(), names).Do(func(r *spanner.Row) error {
		var table, column string
		err := r.Columns(&table, &column)
		columns[table] = append(columns[table], column)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for table, names := range columns {
		slices.Sort(names)
		err := client.Single().Read(t.Context(), table, spanner.AllKeys(), names).Do(func(r *spanner.Row) error {
			text := table
			for i, name := range names {
				text += fmt.Sprintf(" %s=%v", name, r.ColumnValue(i))
			}
			rows = append(rows, text)
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}
	slices.Sort(rows)
	return rows
}

// adminOf returns a client of the database administration API of a server.
func adminOf(t *testing.T, address string) *admin.DatabaseAdminClient {
	t.Helper()
	client, err := admin.NewDatabaseAdminClient(t.Context(), option.WithEndpoint(address), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

const testInstance = "projects/p/instances/i"

// makeDatabase creates a database with DDL statements. protos holds the proto descriptors for them.
func makeDatabase(t *testing.T, client *admin.DatabaseAdminClient, id string, protos []byte, ddl ...string) {
	t.Helper()
	operation, err := client.CreateDatabase(t.Context(), &databasepb.CreateDatabaseRequest{Parent: testInstance, CreateStatement: "CREATE DATABASE `" + id + "`", ExtraStatements: ddl, ProtoDescriptors: protos})
	if err == nil {
		_, err = operation.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFolder checks that a database has the same definitions and rows after it was exported, in each format, and
// imported into a new database. It has every kind of object, and extreme values of every type. The sequences of the new
// database must not return values that the sequences of the first database have returned.
func TestFolder(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	_, address := startServer(t, "--in-memory", "--database", testInstance+"/databases/other")
	client := adminOf(t, address)
	ddl := slices.Clone(wholeDDL)
	at := slices.IndexFunc(ddl, func(s string) bool { return strings.HasPrefix(s, "CREATE UNIQUE") })
	makeDatabase(t, client, "d", itemDescriptors(t), slices.Insert(ddl, at, edgesDDL...)...)
	from := connectTo(t, address, testInstance+"/databases/d")
	fillWhole(t, from)
	want := allRows(t, from)
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		out, err := runIn(t, dir, append(args, "--endpoint", address)...)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return out
	}
	for _, format := range exportFormats() {
		t.Run(format, func(t *testing.T) {
			run("export", "--to", format, "--format", format, "--timestamps", "text", "--database", testInstance+"/databases/d")
			out := run("import", format, "--create", "--database", testInstance+"/databases/into-"+format)
			if !strings.Contains(out, "made the database ") || !strings.Contains(out, fmt.Sprintf("%s is imported: 14 tables with %d rows\n", format, len(want))) || strings.ContainsAny(out, "{[") {
				t.Error(out)
			}
			r, err := client.GetDatabaseDdl(t.Context(), &databasepb.GetDatabaseDdlRequest{Database: testInstance + "/databases/into-" + format})
			if err != nil {
				t.Fatal(err)
			}
			was := manifestOf(t, filepath.Join(dir, format)).DDL
			plain := func(text string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(text) }
			for i, text := range r.Statements {
				if text = strings.Replace(text, "ALTER DATABASE `into-"+format+"`", "ALTER DATABASE d", 1); i >= len(was) || plain(text) != plain(was[i]) {
					t.Errorf("the copy has %s", text)
				}
			}
			if len(r.Statements) != len(was) {
				t.Errorf("the copy has %d definitions of %d", len(r.Statements), len(was))
			}
			into := connectTo(t, address, testInstance+"/databases/into-"+format)
			got := allRows(t, into)
			for i, row := range got {
				if i >= len(want) || row != want[i] {
					t.Fatalf("%.2000s\nwant\n%.2000s", row, want[i])
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%d rows of %d", len(got), len(want))
			}
			for range 20 {
				update(t, into, "INSERT INTO Labels (Name) VALUES ('new')")
				update(t, into, "INSERT INTO music.Played (Label) VALUES (NULL)")
			}
			for _, keys := range []string{"SELECT Id FROM Labels", "SELECT Id FROM music.Played", "SELECT N FROM music.Played", "SELECT M FROM music.Played", "SELECT O FROM music.Played"} {
				all := values(t, into, keys)
				slices.Sort(all)
				if n := len(slices.Compact(all)); n != 70 {
					t.Errorf("%s: %d values of 70", keys, n)
				}
			}
		})
	}
}

// TestFolderIntoTables checks that an import of a folder into existing tables writes each row before the rows that
// refer to it. If the tables differ from the exported ones, or the files from the manifest, the command must end with a
// clear message and exit status.
func TestFolderIntoTables(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	_, address := startServer(t, "--in-memory", "--database", testInstance+"/databases/other")
	client := adminOf(t, address)
	ddl := []string{
		"CREATE TABLE Z (K INT64) PRIMARY KEY (K)",
		"CREATE TABLE A (K INT64, Z INT64, FOREIGN KEY (Z) REFERENCES Z (K)) PRIMARY KEY (K)",
	}
	makeDatabase(t, client, "d", nil, ddl...)
	makeDatabase(t, client, "same", nil, ddl...)
	makeDatabase(t, client, "wide", nil, ddl[0], "CREATE TABLE A (K INT64, Z STRING(MAX)) PRIMARY KEY (K)")
	makeDatabase(t, client, "narrow", nil, ddl[0])
	from := connectTo(t, address, testInstance+"/databases/d")
	update(t, from, "INSERT INTO Z (K) SELECT x FROM UNNEST(GENERATE_ARRAY(1, 100)) AS x")
	update(t, from, "INSERT INTO A (K, Z) SELECT K, K FROM Z")
	dir := t.TempDir()
	for _, to := range []string{"whole", "part", "counted", "changed"} {
		args := []string{"export", "--to", to, "--database", testInstance + "/databases/d", "--endpoint", address}
		if to == "part" {
			args = append(args, "A")
		}
		if out, err := runIn(t, dir, args...); err != nil {
			t.Fatal(out)
		}
	}
	// The manifest in the folder "counted" has ten times the real numbers of rows. A file in the folder "changed" has
	// one byte changed, but the same size.
	name := filepath.Join(dir, "counted", "manifest.json")
	text, err := os.ReadFile(name)
	if err == nil {
		text = regexp.MustCompile(`"rows": [1-9][0-9]*,`).ReplaceAllFunc(text, func(b []byte) []byte { return append(b[:len(b)-1:len(b)-1], '0', ',') })
		err = os.WriteFile(name, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "changed", "Z-*.csv"))
	if err == nil {
		text, err = os.ReadFile(files[0])
	}
	if err != nil || len(text) < 3 {
		t.Fatal(err)
	}
	text[len(text)-2]++
	if err := os.WriteFile(files[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, want string
		status     int
	}{
		{"whole --database same --mode insert", "whole is imported: 2 tables with 200 rows\n", 0},
		{"whole --database same --mode insert", "Z-00000-of-", exitFailure}, // the rows already exist
		{"whole --database same --create", "whole is imported: 2 tables with 200 rows\n", 0},
		{"part --database same", "part is imported: 1 tables with 100 rows\n", 0},
		{"part --database new --create", "left out the foreign key of A to Z: the folder does not have all tables of its database\nmade 1 table\n", 0},
		{"whole --database wide", "column Z of table A is STRING(MAX), and INT64 was exported", exitFailure},
		{"whole --database narrow", "the database has no table A: with --create the import makes what whole has and the database has not", exitFailure},
		{"whole --database narrow --create", "made 1 table\n", 0},
		{"counted --database same", "the manifest says that table Z has 1000 rows, and its files have 100", exitFailure},
		{"changed --database same", "is not as it was exported: its SHA-256 sum is ", exitFailure},
		{"whole --database same --table A", "--table has no effect on a folder that was exported, which tells how its files are read: leave it out", exitUsage},
		{"whole --database same --delimiter ;", "--delimiter has no effect on a folder", exitUsage},
		{". --database same", ". is a folder without manifest.json: crowfoot export did not write it", exitFailure},
	} {
		args := strings.Fields(strings.Replace(c.args, "--database ", "--database "+testInstance+"/databases/", 1))
		cmd := exec.Command(os.Args[0], append([]string{"import", "--endpoint", address}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), runMain+"=1")
		out, _ := cmd.CombinedOutput()
		if status := cmd.ProcessState.ExitCode(); status != c.status || !strings.Contains(string(out), c.want) || status == 0 && bytes.ContainsAny(out, "{[") {
			t.Errorf("import %s: %d, %s", c.args, status, out)
		}
	}
}
