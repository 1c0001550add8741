package split

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
)

const testSpace mvcc.Space = 7

// world holds the splits of a database, whose clock, file system and catalog the test controls. It begins with a table
// T (A, B) and its index ByB.
type world struct {
	*testing.T
	fs      *vfs.MemFS
	now     time.Time
	catalog *schema.Catalog

	*Manager
	store kv.Store
	rows  *mvcc.Versions
	txns  *txn.Manager
	end   func()
}

func newWorld(t *testing.T, statements ...string) *world {
	w := &world{T: t, fs: vfs.NewCrashableMem(), now: time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC), catalog: schema.NewCatalog()}
	w.alter("CREATE TABLE T (A INT64 NOT NULL, B STRING(MAX)) PRIMARY KEY (A)", "CREATE INDEX ByB ON T(B)")
	w.alter(statements...)
	w.open()
	t.Cleanup(func() { w.end() })
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// alter makes a new catalog. It does not change rows.
func (w *world) alter(statements ...string) {
	w.Helper()
	for _, s := range statements {
		next, _, err := w.catalog.Apply(s, nil)
		w.ok(err)
		w.catalog = next
	}
}

func (w *world) clock() time.Time { return w.now }

func (w *world) open() {
	store, err := pebble.Open("data", w.fs)
	w.ok(err)
	oracle, err := txn.NewOracle(store, w.clock)
	w.ok(err)
	w.store, w.rows = store, mvcc.New(store).In(testSpace)
	w.txns = txn.NewManager(w.rows, oracle, txn.Config{Retention: time.Hour})
	w.Manager, err = Open(Config{
		Database: "projects/p/instances/i/databases/d", Space: testSpace, Store: store, Rows: w.rows, Clock: w.clock,
		Catalog: func() *schema.Catalog { return w.catalog },
	})
	w.ok(err)
	w.end = func() {
		w.ok(oracle.Close())
		w.ok(store.Close())
	}
}

// crash reopens the store with only those files and bytes that were synced, as after a crash of the machine.
func (w *world) crash() {
	after := w.fs.CrashClone(vfs.CrashCloneCfg{})
	w.end()
	w.fs = after
	w.open()
}

// point returns a split point of T that expires once the duration life has passed.
func (w *world) point(a int64, life time.Duration) Point {
	return Point{Table: w.catalog.Table("T"), Key: []value.Value{value.OfInt64(a)}, Initiator: "test", Expires: w.now.Add(life)}
}

// indexPoint returns a split point of ByB that expires in an hour. If the parameter a is NULL, the point has no table
// key.
func (w *world) indexPoint(b string, a value.Value) Point {
	x := w.catalog.Index("ByB")
	p := Point{Table: x.Table, Index: x, Key: []value.Value{value.OfString(b)}, Initiator: "test", Expires: w.now.Add(time.Hour)}
	if !a.IsNull() {
		p.TableKey = []value.Value{a}
	}
	return p
}

// shows checks that UserPoints returns points with these keys.
func (w *world) shows(want ...string) {
	w.Helper()
	var got []string
	for _, p := range w.UserPoints() {
		got = append(got, p.Key)
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		w.Errorf("got  %v\nwant %v", got, want)
	}
}

// stored counts the points in the store.
func (w *world) stored() (n int) {
	w.ok(meta.Each(w.store, meta.SplitPoint, func(string, []byte) error { n++; return nil }))
	return n
}

// splitTexts returns the current splits, each as START-LIMIT.
func (w *world) splitTexts() (list []string) {
	s := w.at(w.now)
	for i := range len(s.bounds) + 1 {
		from, to := w.boundTexts(s.start(i), s.limit(i))
		list = append(list, from+"-"+to)
	}
	return list
}

func (w *world) wantSplits(want ...string) {
	w.Helper()
	if got := w.splitTexts(); strings.Join(got, " ") != strings.Join(want, " ") {
		w.Errorf("splits\ngot  %v\nwant %v", got, want)
	}
}

// fill writes rows of T with long values.
func (w *world) fill(from, to int64) {
	t := w.catalog.Table("T")
	m := table.Mutation{Op: table.InsertOrUpdate, Table: t, Columns: t.Columns}
	for a := from; a < to; a++ {
		m.Rows = append(m.Rows, []value.Value{value.OfInt64(a), value.OfString(noise(a))})
	}
	w.commit(m)
}

func (w *world) commit(m ...table.Mutation) *txn.Tx {
	w.Helper()
	tx := w.txns.Begin(txn.Options{})
	_, err := tx.Commit(context.Background(), func(to table.Writer) error {
		_, err := table.Apply(context.Background(), to, table.NewDescriptors(w.catalog), m, w.now)
		return err
	}, txn.CommitOptions{})
	w.ok(err)
	return tx
}

// noise returns a thousand letters that hardly compress, the same ones for the same seed.
func noise(seed int64) string {
	b := make([]byte, 1000)
	x := uint64(seed)*0x9E3779B97F4A7C15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = 'a' + byte(x%26)
	}
	return string(b)
}
