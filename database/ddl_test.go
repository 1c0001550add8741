package database

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// hold runs a statement that works on existing rows. It waits until the statement's first catalog is published and
// progress was reported as often as the parameter reports says. Then it makes the store refuse writes, so that the
// change stays unfinished.
func hold(d *Database, store *disktest.Refusing, statement string, reports int) error {
	before := len(d.schema.Versions())
	var reported atomic.Int64
	store.When(func() bool { return len(d.schema.Versions()) > before && reported.Load() >= int64(reports) })
	defer store.When(nil)
	err := d.UpdateSchema(context.Background(), []string{statement}, &schemachange.Operation{
		Progress: func(schemachange.Progress) { reported.Add(1) },
		// If a batch is refused, or a row breaks a rule, the change must stay unfinished and not be undone.
		Interrupted: func() bool { return true },
	})
	if err == nil || len(d.schema.Versions()) != before+1 || !d.schema.Newest().Tentative() {
		return fmt.Errorf("%s is not held: %w", statement, err)
	}
	return nil
}

// hold calls the function hold for the test's database, which leaves the schema change of a statement unfinished. The
// database must be on a store that can refuse batches: see createOn.
func (b *bed) hold(statement string, reports int) {
	b.t.Helper()
	if err := hold(b.db, b.store.(*disktest.Refusing), statement, reports); err != nil {
		b.t.Fatal(err)
	}
}

func refusing(s kv.Store) kv.Store { return &disktest.Refusing{Store: s} }

// reopen closes the registry and the store, and opens both again on the same files.
func (b *bed) reopen() *bed {
	b.t.Helper()
	b.shut(b.store)
	again := openAt(b.t, b.fs, time.Now, b.wrap)
	db, err := again.Database(testName)
	if err != nil {
		b.t.Fatal(err)
	}
	again.db = db
	return again
}

// fails checks that preparing a query with catalog c fails with a code.
func (b *bed) fails(c *schema.Catalog, sql string, code codes.Code) {
	b.t.Helper()
	_, err := b.db.Prepare(context.Background(), c, sql, nil, prepare.Options{})
	if usererror.CodeOf(err) != code {
		b.t.Errorf("%s: got %v", sql, err)
	}
}

func rowsOf(n int64) (rows [][2]int64) {
	for k := range n {
		rows = append(rows, [2]int64{k, k % 7})
	}
	return rows
}

// TestHalfMadeChangeIsTakenBack checks that the next start undoes a schema change if the server was stopped while the
// change filled existing rows. Nothing that the change has written may ever be read.
func TestHalfMadeChangeIsTakenBack(t *testing.T) {
	for statement, reports := range map[string]int{ // reports counts the progress reports until all rows are filled
		"CREATE INDEX ByBoth ON T(V, K)":                                      1,
		"ALTER TABLE T ADD COLUMN W INT64 NOT NULL DEFAULT (7)":               1,
		"ALTER TABLE T ADD COLUMN W INT64 AS (V + 1) STORED":                  1,
		"ALTER INDEX ByV ADD STORED COLUMN X":                                 1,
		"ALTER TABLE U ADD CONSTRAINT Known FOREIGN KEY (V) REFERENCES T (X)": 2,
	} {
		t.Run(statement, func(t *testing.T) {
			b := createOn(t, refusing, "CREATE TABLE T (K INT64, V INT64, X INT64) PRIMARY KEY (K)", "CREATE INDEX ByV ON T(V)",
				"CREATE TABLE U (K INT64, V INT64) PRIMARY KEY (K)")
			if err := b.insert("T", rowsOf(10)...); err != nil {
				t.Fatal(err)
			}
			before := strings.Join(b.db.DDL(), "\n")
			b.hold(statement, reports)
			if err := b.insert("T", [2]int64{10, 3}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(b.db.DDL(), "\n"); got != before {
				t.Errorf("under way the schema is\n%s\nit was\n%s", got, before)
			}
			again := b.reopen()
			if got := strings.Join(again.db.DDL(), "\n"); got != before {
				t.Errorf("the schema is\n%s\nit was\n%s", got, before)
			}
			if got := again.query("SELECT COUNT(*) FROM T@{FORCE_INDEX=ByV} WHERE V >= 0"); got != "11\n" {
				t.Errorf("the index has %s entries", got)
			}
			again.alter("ALTER TABLE T ADD COLUMN Y STRING(MAX)")
			if got := again.query("SELECT COUNT(*) FROM T WHERE Y IS NOT NULL"); got != "0\n" {
				t.Errorf("%s rows have values that nobody wrote", got)
			}
		})
	}
}

// TestColumnIsHiddenUntilFilled checks that requests cannot name a new column before all rows have a value for it,
// while rows inserted meanwhile get the value.
func TestColumnIsHiddenUntilFilled(t *testing.T) {
	b := createOn(t, refusing, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	if err := b.insert("T", rowsOf(10)...); err != nil {
		t.Fatal(err)
	}
	before, err := b.db.Transactions().Snapshot(context.Background(), txn.Bound{})
	if err != nil {
		t.Fatal(err)
	}
	const statement = "ALTER TABLE T ADD COLUMN W INT64 NOT NULL DEFAULT (7)"
	b.hold(statement, 0)
	hidden := b.db.Catalog()
	b.fails(hidden, "SELECT W FROM T", codes.InvalidArgument)
	b.fails(hidden, "UPDATE T SET W = NULL WHERE TRUE", codes.InvalidArgument)
	if _, err := b.db.Projection(hidden, "T", "", []string{"W"}); usererror.CodeOf(err) != codes.NotFound {
		t.Errorf("READ of the column: %v", err)
	}
	state := "SELECT SPANNER_STATE = 'WRITE_ONLY' AND COLUMN_NAME = 'W' FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'T' ORDER BY ORDINAL_POSITION DESC LIMIT 1"
	if got := b.query("SELECT CAST((" + state + ") AS INT64)"); got != "1\n" {
		t.Errorf("INFORMATION_SCHEMA does not show the column: %s", got)
	}
	if got := b.query("SELECT * FROM T WHERE K = 3"); got != "3 3\n" {
		t.Errorf("SELECT * shows %q", got)
	}
	if err := b.insert("T", [2]int64{10, 3}); err != nil {
		t.Fatal(err)
	}

	b = b.reopen()
	b.alter(statement)
	if got := b.query("SELECT COUNT(*), SUM(W) FROM T"); got != "11 77\n" {
		t.Errorf("afterwards there are %s", got)
	}
	// A read in the past still finds no such column.
	past := b.catalogAt(before.Timestamp())
	b.fails(past, "SELECT W FROM T", codes.InvalidArgument)
	if _, err := b.db.Projection(past, "T", "", []string{"W"}); usererror.CodeOf(err) != codes.NotFound {
		t.Errorf("READ of the column in the past: %v", err)
	}
}

// TestDefaultIsSeenAtOnce adds a column with a DEFAULT and a generated column while reads run. Each read must find a
// value of the new column in every row, or must fail because there is no such column yet.
func TestDefaultIsSeenAtOnce(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	if err := b.insert("T", rowsOf(5*table.ChunkRows)...); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for _, c := range []string{"W", "S"} {
		readers.Go(func() {
			ctx := context.Background()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if n, err := b.count(ctx, fmt.Sprintf("SELECT COUNT(*) FROM T WHERE %s IS NULL", c)); err == nil && n != 0 {
					t.Errorf("%d rows without %s", n, c)
					return
				} else if err != nil && usererror.CodeOf(err) != codes.InvalidArgument {
					t.Error(err)
					return
				}
			}
		})
	}
	writers := b.insertBeside(stop, &readers)
	b.alter("ALTER TABLE T ADD COLUMN W INT64 NOT NULL DEFAULT (7)", "ALTER TABLE T ADD COLUMN S INT64 AS (V + 1) STORED")
	close(stop)
	readers.Wait()
	want := fmt.Sprintf("%d %d\n", 5*table.ChunkRows+writers.Load(), 7*(5*table.ChunkRows+writers.Load()))
	if got := b.query("SELECT COUNT(S), SUM(W) FROM T"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestForeignKeyWhileWriting checks that writes do not fail because of entries that the index for a new foreign key
// lacks while the index is filled.
func TestForeignKeyWhileWriting(t *testing.T) {
	b := createOn(t, refusing, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)", "CREATE TABLE U (K INT64, V INT64) PRIMARY KEY (K)")
	if err := b.insert("T", [2]int64{1, 10}, [2]int64{2, 20}); err != nil {
		t.Fatal(err)
	}
	const statement = "ALTER TABLE U ADD CONSTRAINT Known FOREIGN KEY (V) REFERENCES T (V)"
	b.hold(statement, 0)
	if err := b.insert("U", [2]int64{1, 20}); err != nil {
		t.Errorf("a row whose reference is not in the index yet: %v", err)
	}
	b = b.reopen()
	b.alter(statement)
	if err := b.insert("U", [2]int64{2, 10}); err != nil {
		t.Error(err)
	}
	wantCode(t, b.insert("U", [2]int64{3, 30}), codes.FailedPrecondition)
}

// TestCancelledExpression checks that a statement fails with the context's error if the context ends while an
// expression is compiled. An operation with another error would not be resumed after a restart.
func TestCancelledExpression(t *testing.T) {
	b := open(t, vfs.NewMem())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := schemachange.Apply(ctx, schema.NewCatalog(), "CREATE TABLE T (K INT64 DEFAULT (missing)) PRIMARY KEY (K)", time.Now, sequence.New(b.store))
	if err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// TestForeignKeyOfNewTable checks that a new table is not visible before the index that its foreign key needs on
// another table is filled. Until then, the other table must be writable as before.
func TestForeignKeyOfNewTable(t *testing.T) {
	b := createOn(t, refusing, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	if err := b.insert("T", [2]int64{1, 10}, [2]int64{2, 20}); err != nil {
		t.Fatal(err)
	}
	const statement = "CREATE TABLE U (K INT64, V INT64, CONSTRAINT Known FOREIGN KEY (V) REFERENCES T (V)) PRIMARY KEY (K)"
	before := strings.Join(b.db.DDL(), "\n")
	b.hold(statement, 0)
	b.fails(b.db.Catalog(), "SELECT K FROM U", codes.InvalidArgument)
	if err := b.insert("T", [2]int64{3, 30}); err != nil {
		t.Error(err)
	}
	b = b.reopen()
	if got := strings.Join(b.db.DDL(), "\n"); got != before {
		t.Errorf("the schema is\n%s\nit was\n%s", got, before)
	}
	b.shut(b.store)
	store := new(betweenStore)
	b = openAt(t, b.fs, time.Now, func(s kv.Store) kv.Store { store.Store = s; return store })
	var err error
	if b.db, err = b.Database(testName); err != nil {
		t.Fatal(err)
	}
	var once atomic.Bool
	store.between = func() { // runs before the first entries of the index are written
		if b.db.schema.Newest().Tentative() && once.CompareAndSwap(false, true) {
			if err := b.insert("T", [2]int64{4, 40}); err != nil {
				t.Error(err)
			}
		}
	}
	b.alter(statement)
	if !once.Load() {
		t.Error("no row was inserted while the index was filled")
	}
	for v := range int64(4) {
		if err := b.insert("U", [2]int64{v, 10 * (v + 1)}); err != nil {
			t.Error(err)
		}
	}
	wantCode(t, b.insert("U", [2]int64{9, 50}), codes.FailedPrecondition)
}
