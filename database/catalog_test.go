package database

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

// tableStatements returns statements that create tables of 20 columns. Every second table is interleaved in the one
// before it, and every third one has a foreign key to the first.
func tableStatements(from, to int) (list []string) {
	for i := from; i < to; i++ {
		var b strings.Builder
		fmt.Fprintf(&b, "CREATE TABLE Table%d (K0 INT64 NOT NULL, K1 INT64", i)
		for c := range 18 {
			fmt.Fprintf(&b, ", Column%d STRING(MAX)", c)
		}
		if i%3 == 2 {
			b.WriteString(", FOREIGN KEY (K1) REFERENCES Table0 (K0)")
		}
		if i%2 == 0 {
			b.WriteString(") PRIMARY KEY (K0)")
		} else {
			fmt.Fprintf(&b, ") PRIMARY KEY (K0, K1), INTERLEAVE IN PARENT Table%d ON DELETE CASCADE", i-1)
		}
		list = append(list, b.String())
	}
	return list
}

// storedBytes returns the size in bytes of the stored schema versions of all databases.
func (b *bed) storedBytes() (n int) {
	b.t.Helper()
	for _, kind := range []string{meta.Schema, meta.Table} {
		err := meta.Each(b.store, kind, func(_ string, data []byte) error {
			n += len(data)
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return n
}

// TestVersionsShare checks that the storage and memory of each schema version depend only on what the version changes,
// not on the size of the schema. The test adds tables one by one to a schema that has many.
func TestVersionsShare(t *testing.T) {
	const tables, versions = 1000, 100
	b := create(t, tableStatements(0, tables)...)
	whole := b.storedBytes()
	held := heapBytes()
	b.alter(tableStatements(tables, tables+versions)...)
	if each := (b.storedBytes() - whole) / versions; each > 4*whole/tables {
		t.Errorf("a version with one more table takes %d bytes of storage, a table takes %d", each, whole/tables)
	}
	if each := (heapBytes() - held) / versions; each > 64<<10 {
		t.Errorf("a version with one more table takes %d bytes of memory", each)
	}
	list := b.db.schema.Versions()
	if len(list) != versions+1 {
		t.Fatalf("%d versions", len(list))
	}
	for i := range versions {
		var other int
		for old := range list[i].Catalog.Tables() {
			if list[i+1].Catalog.TableByID(old.ID) != old {
				other++
			}
		}
		if other > 0 {
			t.Fatalf("version %d shares all but %d tables with the one before", i+1, other)
		}
	}
	want := strings.Join(b.db.DDL(), ";\n")
	again := b.reopen()
	if got := strings.Join(again.db.DDL(), ";\n"); got != want {
		t.Error("the schema is not what it was before the restart")
	}
	for i, v := range again.db.schema.Versions() {
		for old := range list[i].Catalog.Tables() {
			if v.Catalog.Table(old.FullName()) == nil {
				t.Fatalf("version %d has no table %s", i, old.FullName())
			}
		}
		if i > 0 && v.Catalog.Table("Table0") != again.db.schema.Versions()[0].Catalog.Table("Table0") {
			t.Fatalf("version %d does not share its tables after a restart", i)
		}
	}
}

func heapBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestForgottenTables checks that the stored records of a table are deleted when no schema version that is kept needs
// them.
func TestForgottenTables(t *testing.T) {
	a := newAged(t, "CREATE TABLE T (K INT64) PRIMARY KEY (K)", "CREATE TABLE U (K INT64) PRIMARY KEY (K)")
	statements := []string{"DROP TABLE U", "CREATE TABLE V (K INT64) PRIMARY KEY (K)", "DROP TABLE V"}
	for i := range 20 {
		statements = append(statements, fmt.Sprintf("ALTER TABLE T ADD COLUMN C%d INT64", i))
	}
	if err := a.db.UpdateSchema(context.Background(), statements, nil); err != nil {
		t.Fatal(err)
	}
	count := func(kind string) (n int) {
		if err := meta.Each(a.store, kind, func(string, []byte) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(meta.Table); n != 25 {
		t.Errorf("%d records of tables", n)
	}
	want := strings.Join(a.db.DDL(), "\n")
	a.now.Add((2 * time.Hour).Microseconds())
	if err := a.db.collect(context.Background()); err != nil {
		t.Fatal(err)
	}
	if versions, tables := count(meta.Schema), count(meta.Table); versions != 1 || tables != 1 {
		t.Errorf("%d records of versions and %d of tables for one of each", versions, tables)
	}
	a.close()
	a.open()
	db, err := a.Database(testName)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(db.DDL(), "\n"); got != want {
		t.Errorf("after a restart:\n%s\nbefore:\n%s", got, want)
	}
}

// TestForgetRefused checks that the next collection deletes the old schema versions that the store has refused to
// delete, and also those that have become old since.
func TestForgetRefused(t *testing.T) {
	a := newAged(t, "CREATE TABLE T (K INT64) PRIMARY KEY (K)")
	a.close()
	store := &failing{a.store, math.MaxInt}
	a.store = store
	a.open()
	var err error
	if a.db, err = a.Database(testName); err != nil {
		t.Fatal(err)
	}
	change := func(statements ...string) {
		t.Helper()
		if err := a.db.UpdateSchema(context.Background(), statements, nil); err != nil {
			t.Fatal(err)
		}
		a.now.Add((2 * time.Hour).Microseconds())
	}
	change("ALTER TABLE T ADD COLUMN V INT64", "CREATE TABLE U (K INT64, FOREIGN KEY (K) REFERENCES T (K)) PRIMARY KEY (K)")
	past := a.db.schema.FindObsolete(a.db.txns.Earliest())
	store.commits = 0
	if err := a.db.schema.Forget(past); !errors.Is(err, errFailing) {
		t.Fatalf("versions are forgotten, error: %v", err)
	}
	store.commits = math.MaxInt
	change("CREATE TABLE W (K INT64) PRIMARY KEY (K)")
	if err := a.db.collect(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := strings.Join(a.db.DDL(), "\n")
	a.close()
	a.open()
	db, err := a.Database(testName)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(db.DDL(), "\n"); got != want {
		t.Errorf("after a restart:\n%s\nbefore:\n%s", got, want)
	}
	if n := len(db.schema.Versions()); n != 1 {
		t.Errorf("%d schema versions are stored", n)
	}
}

// asFormat1 rewrites the stored schema versions of a database in format 1, in which each version is one record with its
// whole catalog.
func (b *bed) asFormat1() {
	b.t.Helper()
	check := func(err error) {
		b.t.Helper()
		if err != nil {
			b.t.Fatal(err)
		}
	}
	batch := b.store.NewBatch()
	defer batch.Close()
	check(batch.DeleteRange(meta.Range(meta.OfSpace(meta.Table, b.db.space))))
	for _, v := range b.db.schema.Versions() {
		e, err := v.Catalog.Marshal(nil)
		check(err)
		var fields map[string]json.RawMessage
		check(json.Unmarshal(e.Catalog, &fields))
		var tables []json.RawMessage
		for t := range v.Catalog.Tables() {
			tables = append(tables, withoutUses(b.t, e.Objects[t.ID]))
		}
		fields["format"] = json.RawMessage("1")
		fields["tables"], err = json.Marshal(tables)
		check(err)
		whole, err := json.Marshal(fields)
		check(err)
		record := map[string]any{"At": v.At, "Catalog": json.RawMessage(whole), "Garbage": v.Garbage}
		check(meta.Put(batch, meta.Key(meta.OfSpace(meta.Schema, b.db.space), fmt.Sprintf("%020d", v.Catalog.Version)), record))
	}
	check(batch.Commit())
}

// withoutUses removes from the record of a table the fields that format 1 lacks: the columns that expressions use.
func withoutUses(t testing.TB, data []byte) []byte {
	for _, text := range []string{`,"generated_uses":[2]`, `,"uses":[2]`} {
		data = bytes.ReplaceAll(data, []byte(text), nil)
	}
	if bytes.Contains(data, []byte("uses")) {
		t.Fatalf("columns that are read: %s", data)
	}
	return data
}

// failing is a store whose first commits succeed and whose later commits fail. commits is the number of commits that
// still succeed.
type failing struct {
	kv.Store
	commits int
}

type failingBatch struct {
	kv.Batch
	store *failing
}

var errFailing = errors.New("no more commits")

func (s *failing) NewBatch() kv.Batch { return &failingBatch{s.Store.NewBatch(), s} }

func (b *failingBatch) Commit() error {
	if b.store.commits--; b.store.commits < 0 {
		return errFailing
	}
	return b.Batch.Commit()
}

// TestSplitCatalogs checks that the upgrade of schemas from format 1 can be interrupted. Two databases have schemas of
// this format. A crash interrupts the upgrade at each of its commits in turn, or comes after its end; then the upgrade
// runs again. Afterwards each schema version must be as before the upgrade, also for reads in the past, and expressions
// must work.
func TestSplitCatalogs(t *testing.T) {
	fs := vfs.NewCrashableMem()
	b := open(t, fs)
	want := map[mvcc.Space][]string{}
	for i := range 2 {
		name := fmt.Sprintf("%s%d", testName, i)
		var err error
		b.db, err = b.CreateDatabase(context.Background(), name, []string{
			"CREATE TABLE T (K INT64, V INT64 DEFAULT (7), G INT64 AS (V + 1) STORED, CONSTRAINT Small CHECK (V < 100)) PRIMARY KEY (K)",
			"CREATE TABLE U (K INT64) PRIMARY KEY (K)",
		})
		if err != nil {
			t.Fatal(err)
		}
		b.alter("ALTER TABLE U ADD COLUMN X STRING(MAX)", "CREATE INDEX ByV ON T(V)", "DROP TABLE U", "CREATE TABLE U (K INT64, Other INT64) PRIMARY KEY (K)")
		for _, v := range b.db.schema.Versions() {
			want[b.db.space] = append(want[b.db.space], strings.Join(v.Catalog.DDL(), "\n"))
		}
		b.asFormat1()
	}
	b.shut(b.store)
	for commits := range 4 {
		after := fs.CrashClone(vfs.CrashCloneCfg{})
		store, err := pebble.Open("data", after)
		if err != nil {
			t.Fatal(err)
		}
		if err := splitCatalogs(&failing{store, commits}); errors.Is(err, errFailing) != (commits < 2) {
			t.Fatalf("after %d commits: %v", commits, err)
		}
		crashed := after.CrashClone(vfs.CrashCloneCfg{})
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		checkSplit(t, crashed, want)
	}
}

// checkSplit runs the upgrade to its end, opens the databases and compares the versions of their schemas with want.
func checkSplit(t *testing.T, fs vfs.FS, want map[mvcc.Space][]string) {
	t.Helper()
	store, err := pebble.Open("data", fs)
	if err != nil {
		t.Fatal(err)
	}
	if err := splitCatalogs(store); err != nil {
		t.Fatal(err)
	}
	r, err := Open(store, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, fs: fs, Registry: r}
	defer b.shut(store)
	for _, db := range r.AllDatabases() {
		versions := db.schema.Versions()
		if len(versions) != len(want[db.space]) {
			t.Fatalf("%d versions, there were %d", len(versions), len(want[db.space]))
		}
		for i, v := range versions {
			if got := strings.Join(v.Catalog.DDL(), "\n"); got != want[db.space][i] {
				t.Errorf("version %d is\n%s\nit was\n%s", i, got, want[db.space][i])
			}
		}
		if a, b := versions[0].Catalog.Table("T"), versions[1].Catalog.Table("T"); a != b {
			t.Error("versions do not share a table that is the same in both")
		}
		b.db = db
		if err := b.insert("T", [2]int64{1, 100}); err == nil {
			t.Error("a check is not obeyed")
		}
		if err := b.insert("T", [2]int64{1, 99}); err != nil {
			t.Error(err)
		}
		if got := b.query("SELECT G FROM T@{FORCE_INDEX=ByV} WHERE V = 99"); got != "100\n" {
			t.Errorf("the generated column is %q", got)
		}
	}
}
