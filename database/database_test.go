package database

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

const testName = DefaultInstance + "/databases/test"

// bed is a registry on a file system, with one database.
type bed struct {
	t  testing.TB
	fs vfs.FS
	// wrap makes the registry's store from the store on fs. If wrap is nil, the registry uses the store on fs itself.
	wrap func(kv.Store) kv.Store
	*Registry
	db *Database
}

func open(t testing.TB, fs vfs.FS) *bed { return openAt(t, fs, time.Now, nil) }

// dropDatabase drops the database of the test, and erases it.
func dropDatabase(r *Registry) error {
	dropped, err := r.DropDatabase(testName)
	if err == nil {
		dropped.Erase()
	}
	return err
}

// openAt opens a registry on fs with the given clock. If wrap is not nil, the registry uses the store that wrap returns
// for the store on fs.
func openAt(t testing.TB, fs vfs.FS, clock func() time.Time, wrap func(kv.Store) kv.Store) *bed {
	t.Helper()
	disk, err := pebble.Open("data", fs)
	if err != nil {
		t.Fatal(err)
	}
	store := kv.Store(disk)
	if wrap != nil {
		store = wrap(disk)
	}
	r, err := Open(store, Config{Clock: clock, Log: slog.New(slog.DiscardHandler), Kept: memory.NewBudget(memory.NoLimit)})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, fs: fs, wrap: wrap, Registry: r}
	t.Cleanup(func() { b.shut(store) })
	return b
}

var shut sync.Map // stores that are closed already

func (b *bed) shut(store interface{ Close() error }) {
	b.t.Helper()
	if _, done := shut.LoadOrStore(store, true); done {
		return
	}
	if err := b.Close(); err != nil {
		b.t.Error(err)
	}
	if err := store.Close(); err != nil {
		b.t.Error(err)
	}
}

func create(t testing.TB, statements ...string) *bed {
	t.Helper()
	return createOn(t, nil, statements...)
}

// createOn creates a database on a new file system in memory. If wrap is not nil, the registry uses the store that wrap
// returns for the store on the file system.
func createOn(t testing.TB, wrap func(kv.Store) kv.Store, statements ...string) *bed {
	t.Helper()
	b := openAt(t, vfs.NewMem(), time.Now, wrap)
	db, err := b.CreateDatabase(context.Background(), testName, statements)
	if err != nil {
		t.Fatal(err)
	}
	b.db = db
	return b
}

// alter runs DDL that must succeed.
func (b *bed) alter(statements ...string) {
	b.t.Helper()
	if err := b.db.UpdateSchema(context.Background(), statements, nil); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) prepare(sql string, params map[string]*value.Type, opts prepare.Options) (*prepare.Statement, error) {
	return b.db.Prepare(context.Background(), b.db.Catalog(), sql, params, opts)
}

func (b *bed) mustPrepare(sql string) *prepare.Statement {
	b.t.Helper()
	s, err := b.prepare(sql, nil, prepare.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// insert inserts rows of two INT64 columns by a mutation.
func (b *bed) insert(tableName string, rows ...[2]int64) error {
	c := b.db.Catalog()
	t := c.Table(tableName)
	m := table.Mutation{Op: table.Insert, Table: t, Columns: t.Columns[:2]}
	for _, r := range rows {
		m.Rows = append(m.Rows, []value.Value{value.OfInt64(r[0]), value.OfInt64(r[1])})
	}
	tx := b.db.Transactions().Begin(txn.Options{})
	if err := tx.DependOn(context.Background(), b.db.mutations(c, &m).Dependencies(m.Op), c); err != nil {
		return err
	}
	_, err := tx.Commit(context.Background(), func(w table.Writer) error {
		_, err := table.Apply(context.Background(), w, table.NewDescriptors(b.db.Catalog()), []table.Mutation{m}, time.Now())
		return err
	}, txn.CommitOptions{})
	return err
}

// insertBeside starts goroutines that insert rows into T until stop is closed. The keys are above those of existing
// rows. It returns a counter of the inserted rows.
func (b *bed) insertBeside(stop chan struct{}, running *sync.WaitGroup) *atomic.Int64 {
	written := new(atomic.Int64)
	for i := range int64(4) {
		running.Go(func() {
			for k := int64(0); ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				switch err := b.insert("T", [2]int64{(i+1)*1_000_000 + k, k % 7}); {
				case err == nil:
					written.Add(1)
				case usererror.CodeOf(err) != codes.Aborted:
					b.t.Error(err)
					return
				}
			}
		})
	}
	return written
}

func (b *bed) catalogAt(at mvcc.Timestamp) *schema.Catalog {
	b.t.Helper()
	c, err := b.db.CatalogAt(at)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// count runs a query at a strong snapshot, with the schema of the snapshot's timestamp, and returns the single number
// of its result.
func (b *bed) count(ctx context.Context, sql string) (int64, error) {
	snapshot, err := b.db.Transactions().Snapshot(ctx, txn.Bound{})
	if err != nil {
		return 0, err
	}
	defer snapshot.Close()
	s, err := b.db.Prepare(ctx, b.catalogAt(snapshot.Timestamp()), sql, nil, prepare.Options{})
	if err != nil {
		return 0, err
	}
	rows, err := s.Run(ctx, prepare.Run{View: snapshot}, time.Now())
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if _, err := rows.Next(); err != nil {
		return 0, err
	}
	return rows.Values(nil)[0].AsInt64(), nil
}

// query runs a query at a strong snapshot and returns the text of the rows.
func (b *bed) query(sql string) string {
	b.t.Helper()
	ctx := context.Background()
	s, err := b.db.Prepare(ctx, b.db.Catalog(), sql, nil, prepare.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	snapshot, err := b.db.Transactions().Snapshot(ctx, txn.Bound{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer snapshot.Close()
	rows, err := s.Run(ctx, prepare.Run{View: snapshot}, time.Now())
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	var out strings.Builder
	for {
		more, err := rows.Next()
		if err != nil {
			b.t.Fatal(err)
		}
		if !more {
			return out.String()
		}
		for i, v := range rows.Values(nil) {
			if i > 0 {
				out.WriteByte(' ')
			}
			if v.IsNull() {
				out.WriteString("NULL")
			} else {
				fmt.Fprint(&out, v.AsInt64())
			}
		}
		out.WriteByte('\n')
	}
}

func wantCode(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if usererror.CodeOf(err) != code {
		t.Fatalf("got %v (%v), want %v", usererror.CodeOf(err), err, code)
	}
}

// TestInstanceConfig checks that every instance has a configuration, even an instance that was stored by a release
// without configurations.
func TestInstanceConfig(t *testing.T) {
	const made, old = "projects/p/instances/made", "projects/p/instances/old"
	b := open(t, vfs.NewMem())
	if _, err := b.CreateInstance(Instance{Name: made}); err != nil {
		t.Fatal(err)
	}
	if err := meta.Store(b.store, meta.Key(meta.Instance, old), Instance{Name: old}); err != nil {
		t.Fatal(err)
	}
	b.shut(b.store)
	again := open(t, b.fs)
	for name, want := range map[string]string{
		made:            "projects/p/instanceConfigs/emulator-config",
		old:             "projects/p/instanceConfigs/emulator-config",
		DefaultInstance: "projects/default/instanceConfigs/emulator-config",
	} {
		if i, err := again.Instance(name); err != nil || i.Config != want {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
	}
}

func TestReopen(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	if err := b.insert("T", [2]int64{1, 10}, [2]int64{2, 20}); err != nil {
		t.Fatal(err)
	}
	b.alter("CREATE INDEX ByV ON T(V DESC)", "ALTER TABLE T ADD COLUMN W INT64 NOT NULL DEFAULT (7)")
	ddl := strings.Join(b.db.DDL(), "\n")
	if err := b.db.SetDropProtection(true); err != nil {
		t.Fatal(err)
	}
	b.shut(b.store)

	again := open(t, b.fs)
	db, err := again.Database(testName)
	if err != nil {
		t.Fatal(err)
	}
	again.db = db
	if got := strings.Join(db.DDL(), "\n"); got != ddl {
		t.Errorf("after reopening the schema is\n%s\nit was\n%s", got, ddl)
	}
	if got, want := again.query("SELECT K, V, W FROM T@{FORCE_INDEX=ByV} ORDER BY V DESC"), "2 20 7\n1 10 7\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wantCode(t, dropDatabase(again.Registry), codes.FailedPrecondition)
	if err := db.SetDropProtection(false); err != nil {
		t.Fatal(err)
	}
	if err := dropDatabase(again.Registry); err != nil {
		t.Fatal(err)
	}
	_, err = again.Database(testName)
	wantCode(t, err, codes.NotFound)
}

// TestDropIsComplete checks that nothing of a dropped database can be read in a new database with the same name.
func TestDropIsComplete(t *testing.T) {
	ddl := "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"
	b := create(t, ddl)
	if err := b.insert("T", [2]int64{1, 10}); err != nil {
		t.Fatal(err)
	}
	if err := dropDatabase(b.Registry); err != nil {
		t.Fatal(err)
	}
	db, err := b.CreateDatabase(context.Background(), testName, []string{ddl})
	if err != nil {
		t.Fatal(err)
	}
	b.db = db
	if got := b.query("SELECT K, V FROM T"); got != "" {
		t.Errorf("a new database has rows: %q", got)
	}
}

// TestFailedChangeLeavesNothing checks that a schema change which fails because of existing rows leaves the schema as
// it was.
func TestFailedChangeLeavesNothing(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	if err := b.insert("T", [2]int64{1, 10}, [2]int64{2, 10}); err != nil {
		t.Fatal(err)
	}
	before := strings.Join(b.db.DDL(), "\n")
	for _, statement := range []string{
		"CREATE UNIQUE INDEX ByV ON T(V)",
		"ALTER TABLE T ADD CONSTRAINT Small CHECK (V < 10)",
	} {
		err := b.db.UpdateSchema(context.Background(), []string{statement}, nil)
		if usererror.CodeOf(err) != codes.FailedPrecondition {
			t.Errorf("%s: got %v", statement, err)
		}
		if got := strings.Join(b.db.DDL(), "\n"); got != before {
			t.Errorf("after the failed %s the schema is\n%s", statement, got)
		}
	}
	if err := b.insert("T", [2]int64{3, 10}); err != nil {
		t.Errorf("a write after a failed change: %v", err)
	}
	// The name of the index that was not created must be free again.
	b.alter("CREATE INDEX ByV ON T(V)")
	if got, want := b.query("SELECT K FROM T@{FORCE_INDEX=ByV} WHERE V = 10 ORDER BY K"), "1\n2\n3\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestIndexWhileWriting checks that an index that is built while rows are written has an entry for each row in the end.
func TestIndexWhileWriting(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	var first [][2]int64
	for k := int64(0); k < 5000; k++ {
		first = append(first, [2]int64{k, k % 7})
	}
	if err := b.insert("T", first...); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	written := b.insertBeside(stop, &wg)
	b.alter("CREATE INDEX ByV ON T(V)")
	close(stop)
	wg.Wait()
	want := int64(len(first)) + written.Load()
	if got := b.query("SELECT COUNT(*) FROM T@{FORCE_INDEX=ByV} WHERE V >= 0"); got != fmt.Sprintf("%d\n", want) {
		t.Errorf("the index has %s entries, the table %d rows", got, want)
	}
	if got := b.query("SELECT COUNT(*) FROM T@{FORCE_INDEX=_BASE_TABLE}"); got != fmt.Sprintf("%d\n", want) {
		t.Errorf("the table has %s rows, want %d", got, want)
	}
}

func TestNames(t *testing.T) {
	for name, good := range map[string]bool{
		"projects/p/instances/i1/databases/d1":                                   true,
		"projects/p/instances/i1/databases/D1":                                   false,
		"projects/p/instances/i/databases/d":                                     true,
		"projects/p/instances/i1/databases/d1/":                                  false,
		"projects/p/instances/i1":                                                false,
		"projects/p/instances/i1/databases/" + "a23456789012345678901234567890":  true,
		"projects/p/instances/i1/databases/" + "a234567890123456789012345678901": false,
	} {
		if err := CheckDatabaseName(name); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
