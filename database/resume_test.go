package database

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// operated is a database whose schema an operation changes. The operation may run in several processes, one after the
// other.
type operated struct {
	*bed
	files *vfs.MemFS
	now   atomic.Int64  // offset of the clock from the real time, in nanoseconds
	lag   time.Duration // by how much each reading of the clock advances the clock
	op    schemachange.Operation
}

const operatedRows = 6 * table.ChunkRows

// newOperated makes a database with rows, and an operation that has begun.
func newOperated(t *testing.T) *operated {
	o := &operated{files: vfs.NewCrashableMem()}
	o.start(t)
	var err error
	if o.db, err = o.CreateDatabase(t.Context(), testName, []string{"CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"}); err != nil {
		t.Fatal(err)
	}
	var rows [][2]int64
	for k := range int64(operatedRows) {
		rows = append(rows, [2]int64{k, operatedRows - 1 - k})
	}
	for chunk := range slices.Chunk(rows, table.ChunkRows) {
		if err := o.insert("T", chunk...); err != nil {
			t.Fatal(err)
		}
	}
	o.op = schemachange.Operation{Name: testName + "/operations/change", Began: time.Now()}
	if err := o.PutOperation(Operation{Name: o.op.Name, Started: o.op.Began}); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *operated) start(t *testing.T) {
	t.Helper()
	o.bed = openAt(t, o.files, func() time.Time { return time.Now().Add(time.Duration(o.now.Add(int64(o.lag)))) }, nil)
}

// restart ends the process and starts a new one. The parameter left holds the files that the old process has left
// behind; the new process uses them.
func (o *operated) restart(left *vfs.MemFS) {
	o.t.Helper()
	t := o.t.(*testing.T)
	o.shut(o.store)
	o.files = left
	o.start(t)
	var err error
	if o.db, err = o.Database(testName); err != nil {
		t.Fatal(err)
	}
}

// change runs statements as part of the operation, and returns how often they reported progress. The parameter after is
// a number of reports. After that many reports, change calls the function in the parameter happens, and then ends the
// context, as if the process ended.
func (o *operated) change(statements []string, after int, happens func()) (reports int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	op := o.op
	op.Interrupted = func() bool { return ctx.Err() != nil }
	op.Progress = func(p schemachange.Progress) {
		if p.Percent == 100 {
			return
		}
		if reports++; reports == after {
			happens()
			cancel()
		}
	}
	err = o.db.UpdateSchema(ctx, statements, &op)
	return reports, err
}

// resumable holds schema changes of all kinds that do work on rows.
var resumable = map[string]struct {
	sql     string
	reports int           // number of progress reports in all
	lag     time.Duration // by how much each reading of the clock advances it
}{
	"index":        {"CREATE INDEX ByV ON T(V)", 7, 0},
	"unique index": {"CREATE UNIQUE INDEX ByV ON T(V)", 14, 0},
	"stored":       {"ALTER TABLE T ADD COLUMN W INT64 NOT NULL AS (V + 1) STORED", 7, 0},
	"default":      {"ALTER TABLE T ADD COLUMN W INT64 NOT NULL DEFAULT (7)", 7, 0},
	"check":        {"ALTER TABLE T ADD CONSTRAINT Small CHECK (V < 10000)", 7, checkpointLag},
	"foreign key":  {"ALTER TABLE T ADD CONSTRAINT Known FOREIGN KEY (V) REFERENCES T (K)", 14, 0},
	"not null":     {"ALTER TABLE T ALTER COLUMN V INT64 NOT NULL", 7, checkpointLag},
}

// checkpointLag is the time by which the test's clock advances each time it is read. A validation stores a checkpoint
// at most once a second. With this lag, each of its chunks takes at least a second, so each chunk stores a checkpoint.
const checkpointLag = time.Second

// TestInterruptedChange interrupts an operation's schema change by a crash or by the end of the server. The next
// process must continue where it was: its progress must not begin again, and the schema versions that it has published
// must stay, with their timestamps.
func TestInterruptedChange(t *testing.T) {
	for name, c := range resumable {
		for _, end := range []string{"crash", "stop"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				o := newOperated(t)
				// This moves the rows from memory to files. The percentage is computed from the sizes of files.
				o.restart(o.files.CrashClone(vfs.CrashCloneCfg{}))
				o.lag = c.lag
				left := o.files
				const after = 4
				before, err := o.change([]string{c.sql}, after, func() {
					if end == "crash" {
						left = o.files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
					}
				})
				if before != after || err == nil {
					t.Fatalf("%d reports, %v", before, err)
				}
				published := publishedBy(o.db)
				o.restart(left)
				if got := publishedBy(o.db); !slices.Equal(got, published) {
					t.Errorf("versions of %v, before the restart of %v", got, published)
				}
				share := 100 * after / c.reports
				if err := o.db.schema.Token.Acquire(t.Context()); err != nil { // as a change of another operation does
					t.Fatal(err)
				}
				p, ok, err := o.db.Interrupted(t.Context(), o.op.Name)
				if !ok || err != nil || p.Percent < share/2 || p.Percent > 2*share || p.Statement != 0 {
					t.Errorf("after the restart: %+v, %v, %v", p, ok, err)
				}
				o.db.schema.Token.Release()
				if err := o.insert("T", [2]int64{operatedRows, operatedRows}); err != nil {
					t.Error(err)
				}
				again, err := o.change([]string{c.sql}, -1, nil)
				if err != nil || again > c.reports-after+2 {
					t.Errorf("%d reports after the restart, %v", again, err)
				}
				o.complete(c.sql)
			})
		}
	}
}

// TestCancelledBehindAnother cancels the operation of an interrupted change while another change holds the schema's
// token. The cancellation must not wait for the other change. The interrupted change must be undone once the other one
// has released the token.
func TestCancelledBehindAnother(t *testing.T) {
	o := newOperated(t)
	sql := []string{resumable["index"].sql}
	if _, err := o.change(sql, 4, func() {}); err == nil {
		t.Fatal("the change was not interrupted")
	}
	o.restart(o.files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}))
	underWay := func() bool { return o.db.schema.Newest().Tentative() }
	if !underWay() {
		t.Fatal("nothing is under way")
	}
	if err := o.db.schema.Token.Acquire(t.Context()); err != nil { // as a change of another operation does
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.db.UpdateSchema(ctx, sql, &o.op); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !underWay() {
		t.Error("it was taken back under another change")
	}
	o.db.schema.Token.Release()
	for underWay() { // until the interrupted change is undone
		time.Sleep(time.Millisecond)
	}
}

// publishedBy returns the timestamps of the schema versions that an unfinished schema change has published.
func publishedBy(d *Database) (list []mvcc.Timestamp) {
	for _, v := range d.schema.Versions() {
		if v.Tentative() {
			list = append(list, v.At)
		}
	}
	return list
}

// complete checks that a statement has had its complete effect.
func (o *operated) complete(sql string) {
	o.t.Helper()
	if o.db.schema.Newest().Tentative() || slices.Equal(o.db.DDL(), []string{"CREATE TABLE T (\n  K INT64,\n  V INT64,\n) PRIMARY KEY(K)"}) {
		o.t.Errorf("after %s the schema is %q", sql, o.db.DDL())
	}
	for _, found := range o.verify() {
		o.t.Error(found)
	}
	if n, err := o.count(context.Background(), "SELECT COUNT(*) FROM T"); n != operatedRows+1 || err != nil {
		o.t.Errorf("%d rows, %v", n, err)
	}
}

// TestUnreadEntriesGo checks what happens to the entries of an index whose creation is undone. The creation is undone
// because it is cancelled, because rows break the UNIQUE or FOREIGN KEY constraint for which the index is built, or
// because the next process does not resume it. If no schema version has let reads use the index, the entries must be
// deleted at once. If a version has let reads use it, the entries must stay for as long as reads at the timestamps of
// that version are possible.
func TestUnreadEntriesGo(t *testing.T) {
	cancelled := func(o *operated) {
		ctx, cancel := context.WithCancel(t.Context())
		err := o.db.UpdateSchema(ctx, []string{"CREATE INDEX ByV ON T(V)"}, &schemachange.Operation{Progress: func(schemachange.Progress) { cancel() }})
		if err != context.Canceled {
			t.Fatal(err)
		}
	}
	repeats := func(o *operated, sql string, rows ...[2]int64) {
		if err := o.insert("T", rows...); err != nil {
			t.Fatal(err)
		}
		wantCode(t, o.db.UpdateSchema(t.Context(), []string{sql}, nil), codes.FailedPrecondition)
	}
	for name, c := range map[string]struct {
		fails func(o *operated)
		stay  bool
	}{
		"cancelled": {fails: cancelled},
		"unique":    {fails: func(o *operated) { repeats(o, "CREATE UNIQUE INDEX ByV ON T(V)", [2]int64{operatedRows, 7}) }},
		"foreign key": {stay: true, fails: func(o *operated) {
			repeats(o, "ALTER TABLE T ADD CONSTRAINT Known FOREIGN KEY (V) REFERENCES T (K)", [2]int64{operatedRows, -1})
		}},
		"abandoned": {fails: func(o *operated) {
			if _, err := o.change([]string{"CREATE INDEX ByV ON T(V)"}, 3, func() {}); err == nil {
				t.Fatal("it was not interrupted")
			}
			if err := o.ForgetOperations(o.op.Name); err != nil {
				t.Fatal(err)
			}
			o.restart(o.files)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperated(t)
			c.fails(o)
			if o.db.schema.Newest().Tentative() {
				t.Fatal("the change was not taken back")
			}
			if n := o.entries(); n > 0 != c.stay {
				t.Errorf("%d entries are left", n)
			}
			for _, found := range o.verify() {
				t.Error(found)
			}
		})
	}
}

// entries returns the number of stored entries of indexes that no longer exist.
func (o *operated) entries() (n int) {
	o.t.Helper()
	for _, v := range o.db.schema.Versions() {
		_, indexes := v.Catalog.Without(o.db.Catalog())
		for _, x := range indexes {
			s, alone := table.IndexLayout(x).Space()
			if !alone {
				continue
			}
			cur, err := o.db.rows.Scan(s.Start, s.End, o.db.txns.Now(), false)
			if err != nil {
				o.t.Fatal(err)
			}
			for cur.Next() {
				n++
			}
			if err := cur.Close(); err != nil {
				o.t.Error(err)
			}
		}
	}
	return n
}
