package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	admin "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/crowfoot-db/crowfoot/bulk/transfer"
)

var readmeTransfer = regexp.MustCompile(`(?m)^    crowfoot ((?:import|export) .*)$`)

// TestReadmeTransfer runs the README's commands of import and export, as they are written there but for the port, one after the other.
func TestReadmeTransfer(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := readmeTransfer.FindAllStringSubmatch(string(readme), -1)
	if len(commands) < 2 {
		t.Fatalf("found %d commands", len(commands))
	}
	_, address := serve(t, "--in-memory", "--database", crashDatabase, "--database", "projects/p/instances/i/databases/e", "--ddl", writeFile(t, "schema.sql", "CREATE TABLE customer (c_custkey INT64 NOT NULL, c_name STRING(25)) PRIMARY KEY (c_custkey)"))
	dir := t.TempDir()
	var rows []byte
	for i := range 5000 {
		rows = fmt.Appendf(rows, "%d|Customer#%09d|\n", i, i)
	}
	if err := os.WriteFile(filepath.Join(dir, "customer.tbl"), rows, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		out, err := runIn(t, dir, strings.Fields(strings.ReplaceAll(c[1], "127.0.0.1:9010", address))...)
		if err != nil || !strings.Contains(out, "ed 5000 rows in ") {
			t.Errorf("%s: %v\n%s", c[1], err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "customers", "manifest.json")); err != nil {
		t.Error(err)
	}
}

// runIn runs crowfoot in a directory, to its end, and returns both outputs.
func runIn(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), runMain+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const folderDDL = "CREATE SCHEMA music;\n" +
	"CREATE TABLE Labels (Id STRING(36) NOT NULL, Code UUID, Founded DATE, Info JSON, CONSTRAINT HasId CHECK (Id != \"\")) PRIMARY KEY (Id);\n" +
	"CREATE TABLE Singers (SingerId INT64 NOT NULL, Name STRING(100) DEFAULT (\"?\"), Upper STRING(100) AS (UPPER(Name)) STORED, Label STRING(36), Fee NUMERIC,\n" +
	"  Born TIMESTAMP OPTIONS (allow_commit_timestamp = true), Tags ARRAY<STRING(10)>, Photo BYTES(MAX), Height FLOAT32, Weight FLOAT64, Alive BOOL,\n" +
	"  CONSTRAINT OfLabel FOREIGN KEY (Label) REFERENCES Labels (Id)) PRIMARY KEY (SingerId DESC);\n" +
	"CREATE TABLE Albums (SingerId INT64 NOT NULL, AlbumId INT64 NOT NULL, Title STRING(MAX)) PRIMARY KEY (SingerId DESC, AlbumId),\n" +
	"  INTERLEAVE IN PARENT Singers ON DELETE CASCADE;\n" +
	"CREATE TABLE music.Empty (K INT64) PRIMARY KEY (K);\n" +
	"CREATE UNIQUE NULL_FILTERED INDEX ByName ON Singers(Name DESC) STORING (Fee);\n" +
	"CREATE CHANGE STREAM Everything FOR ALL OPTIONS (retention_period = '36h')"

// TestSpannerFolder: a database goes out in the layout of Cloud Spanner's exports, and comes into an empty one with all its definitions and rows.
func TestSpannerFolder(t *testing.T) {
	dir := t.TempDir()
	_, from := serve(t, "--in-memory", "--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", folderDDL))
	client := connect(t, from)
	defer client.Close()
	var rows []*spanner.Mutation
	for i := range 50 {
		rows = append(rows, spanner.Insert("Labels", []string{"Id", "Founded", "Info"}, []any{fmt.Sprint(i), civil.Date{Year: 1 + 200*i, Month: 1, Day: 1}, spanner.NullJSON{Value: i, Valid: i%2 == 0}}),
			spanner.Insert("Singers", []string{"SingerId", "Name", "Label", "Fee", "Born", "Tags", "Photo", "Height", "Weight", "Alive"}, []any{i, fmt.Sprint("n", i), fmt.Sprint(i),
				big.NewRat(int64(i), 8), time.Date(1+40*i, 1, 1, 0, 0, 0, i, time.UTC), []spanner.NullString{{StringVal: "a", Valid: i%2 == 0}}, []byte{byte(i)}, float32(i) / 3, math.Inf(1), i%2 == 0}),
			spanner.Insert("Albums", []string{"SingerId", "AlbumId", "Title"}, []any{i, i, spanner.NullString{}}))
	}
	if _, err := client.Apply(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	if out, err := runIn(t, dir, "export", "--to", "one", "--format", "spanner", "--endpoint", from, "--database", crashDatabase); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"spanner-export.json", "Singers-manifest.json", "music.Empty-manifest.json", "Everything.avro-00000-of-00001", "music.avro-00000-of-00001"} {
		if _, err := os.Stat(filepath.Join(dir, "one", name)); err != nil {
			t.Error(err)
		}
	}
	_, to := serve(t, "--in-memory", "--database", crashDatabase)
	out, err := runIn(t, dir, "import", "one", "--create", "--endpoint", to, "--database", crashDatabase)
	if err != nil || !strings.Contains(out, "imported 50 rows") {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := runIn(t, dir, "export", "--to", "two", "--format", "spanner", "--endpoint", to, "--database", crashDatabase); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	one, two := manifestOf(t, filepath.Join(dir, "one")), manifestOf(t, filepath.Join(dir, "two"))
	slices.Sort(one.DDL)
	slices.Sort(two.DDL)
	normal := func(ddl []string) string { // the foreign key is added behind the check, and names are quoted
		text := strings.NewReplacer("`", "", "\n", " ").Replace(strings.Join(ddl, ";"))
		return regexp.MustCompile(`\s+`).ReplaceAllString(text, " ")
	}
	if normal(one.DDL) != normal(two.DDL) {
		t.Errorf("the definitions differ:\n%s\n%s", normal(one.DDL), normal(two.DDL))
	}
	if fmt.Sprint(one.sums()) != fmt.Sprint(two.sums()) {
		t.Errorf("the rows differ: %v, %v", one.sums(), two.sums())
	}
	// A file that was changed is refused.
	files, _ := filepath.Glob(filepath.Join(dir, "one", "Albums.avro-*"))
	if err := os.WriteFile(files[0], []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := runIn(t, dir, "import", "one", "--endpoint", to, "--database", crashDatabase); err == nil || !strings.Contains(out, "Albums.avro-00000-of") {
		t.Errorf("a damaged file: %v, %s", err, out)
	}
}

type exportManifest transfer.Manifest

func manifestOf(t *testing.T, dir string) (m exportManifest) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// sums are the tables with their rows, and the checksums of their files.
func (m exportManifest) sums() (sums []string) {
	for _, table := range m.Tables {
		for _, f := range table.Files {
			sums = append(sums, fmt.Sprint(f.Name, f.Rows, f.SHA256))
		}
	}
	slices.Sort(sums)
	return sums
}

// TestCreate: --create makes a table for files of each kind, and shows its DDL.
func TestCreate(t *testing.T) {
	_, address := serve(t, "--in-memory", "--database", crashDatabase)
	dir := t.TempDir()
	for name, content := range map[string]string{"a.csv": "K,V,D\n1,x,2026-11-22\n2,,\n", "b.jsonl": `{"K":1,"V":"x","D":"2026-11-22"}` + "\n" + `{"K":2}` + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := []string{"--endpoint", address, "--database", crashDatabase}
	want := "CREATE TABLE `%s` (\n  `K` INT64,\n  `V` STRING(MAX),\n  `D` DATE,\n) PRIMARY KEY (`K`);\nimported 2 rows"
	for table, name := range map[string]string{"A": "a.csv", "B": "b.jsonl"} {
		out, err := runIn(t, dir, append([]string{"import", name, "--table", table, "--create"}, server...)...)
		if err != nil || !strings.HasPrefix(out, fmt.Sprintf(want, table)) {
			t.Errorf("%s: %v, %s", name, err, out)
		}
		for _, format := range []string{"parquet", "arrow", "avro"} {
			to := table + format
			if out, err := runIn(t, dir, append([]string{"export", table, "--to", to, "--format", format}, server...)...); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			out, err := runIn(t, dir, append([]string{"import", to + "/*." + format, "--table", to, "--create", "--key", "K"}, server...)...)
			if err != nil || !strings.HasPrefix(out, fmt.Sprintf(want, to)) {
				t.Errorf("%s: %v, %s", to, err, out)
			}
		}
	}
	again := append([]string{"import", "a.csv", "--table", "A", "--create"}, server...)
	out, err := runIn(t, dir, again...)
	if err == nil || !strings.Contains(out, "table A is there already") {
		t.Errorf("%v, %s", err, out)
	}
	// An import that was killed when it had made its table goes on.
	state := filepath.Join(dir, "A.import-state")
	if err := os.WriteFile(state, []byte(`{"version":1,"creates":"A"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := runIn(t, dir, again...); err != nil || !strings.Contains(out, "imported 2 rows") {
		t.Errorf("behind a kill: %v, %s", err, out)
	}
	// A table that is altered before an import goes on is noticed.
	client := connect(t, address)
	defer client.Close()
	stopped := append([]string{"import", "a.csv", "bad.csv", "--table", "A", "--parallel", "1"}, server...)
	if err := os.WriteFile(filepath.Join(dir, "bad.csv"), []byte("K,V,D\n3,x,yesterday\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := runIn(t, dir, stopped...); err == nil {
		t.Error(out)
	}
	alter(t, address, "ALTER TABLE A ADD COLUMN N INT64")
	if out, err := runIn(t, dir, stopped...); err == nil || !strings.Contains(out, "it has N INT64") {
		t.Errorf("an altered table: %v, %s", err, out)
	}
}

// alter changes the schema of a server's database.
func alter(t *testing.T, address, statement string) {
	t.Helper()
	client, err := admin.NewDatabaseAdminClient(t.Context(), option.WithEndpoint(address), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	operation, err := client.UpdateDatabaseDdl(t.Context(), &databasepb.UpdateDatabaseDdlRequest{Database: crashDatabase, Statements: []string{statement}})
	if err == nil {
		err = operation.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestKillImport kills an import with SIGKILL, again and again, and the same command goes on until every row is in.
func TestKillImport(t *testing.T) {
	const rows = 200_000
	_, address := serve(t, "--in-memory", "--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (K)"))
	client := connect(t, address)
	defer client.Close()
	count := func() (n int64) {
		err := client.Single().Query(t.Context(), spanner.NewStatement("SELECT COUNT(*) FROM T")).Do(func(r *spanner.Row) error { return r.Column(0, &n) })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	dir := t.TempDir()
	var text []byte
	for i := range rows {
		text = fmt.Appendf(text, "%d|%s|\n", i, strings.Repeat("x", 100))
	}
	if err := os.WriteFile(filepath.Join(dir, "t.tbl"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"import", "t.tbl", "--table", "T", "--parallel", "1", "--mode", "insert", "--endpoint", address, "--database", crashDatabase}
	kills := 0
	for before := int64(-1); ; {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), runMain+"=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for n := count(); n <= before+rows/5; n = count() { // until it has done some work
			select {
			case err := <-ended:
				if err != nil || count() != rows || kills == 0 {
					t.Fatalf("the import ends with %v after %d kills, and %d rows are in", err, kills, count())
				}
				return
			default:
			}
		}
		cmd.Process.Kill()
		<-ended
		if _, err := os.Stat(filepath.Join(dir, "T.import-state")); err != nil && count() == rows && kills > 0 { // it was complete before the kill
			return
		}
		kills++
		before = count()
	}
}

// TestKillServerWhileImporting kills the server with SIGKILL, again and again, while an import runs. It goes on by itself, and ends with every row in, once.
func TestKillServerWhileImporting(t *testing.T) {
	const rows = 200_000
	dir := t.TempDir()
	var text []byte
	for i := range rows {
		text = fmt.Appendf(text, "%d|%s %d|\n", i, strings.Repeat("x", 100), i)
	}
	if err := os.WriteFile(filepath.Join(dir, "t.tbl"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	ddl := writeFile(t, "schema.sql", "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (K)")
	for _, mode := range []string{"insert", "insert-or-update"} {
		args := []string{"--data", filepath.Join(dir, mode), "--database", crashDatabase, "--ddl", ddl}
		server, address := serve(t, args...)
		args = append(args[:len(args)-2:len(args)-2], "--grpc", address)
		client := connect(t, address)
		defer client.Close()
		number := func(sql string) (n int64) {
			err := client.Single().Query(t.Context(), spanner.NewStatement(sql)).Do(func(r *spanner.Row) error { return r.Column(0, &n) })
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		cmd := exec.Command(os.Args[0], "import", "t.tbl", "--table", "T", "--parallel", "1", "--mode", mode, "--endpoint", address, "--database", crashDatabase)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), runMain+"=1")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for kill := range 2 {
			for number("SELECT COUNT(*) FROM T") <= int64(kill)*rows/3 {
				time.Sleep(time.Millisecond)
			}
			server.Process.Kill()
			server.Wait()
			server, _ = serve(t, args...)
		}
		if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "imported 200000 rows") || !strings.Contains(out.String(), "over Arrow Flight SQL") {
			t.Errorf("%s: %v: %s", mode, err, out.String())
		}
		if n, good := number("SELECT COUNT(*) FROM T"), number("SELECT COUNT(*) FROM T WHERE ENDS_WITH(V, CONCAT(' ', CAST(K AS STRING)))"); n != rows || good != rows {
			t.Errorf("%s: %d rows, %d as they were sent", mode, n, good)
		}
	}
}
