package database

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// aged is a database whose clock moves only when the test moves it.
type aged struct {
	t     *testing.T
	store kv.Store
	now   atomic.Int64 // the clock's time in Unix microseconds
	lag   atomic.Int64 // microseconds by which each reading of the clock advances it, as if the machine were busy
	*Registry
	db  *Database
	txs map[string]*txn.Tx
}

func newAged(t *testing.T, statements ...string) *aged {
	t.Helper()
	store, err := pebble.Open("data", vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	a := &aged{t: t, store: store, txs: map[string]*txn.Tx{}}
	a.now.Store(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	a.open()
	if a.db, err = a.CreateDatabase(context.Background(), testName, statements); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// reopenOn closes the registry and opens it on another store, which must have the same data.
func (a *aged) reopenOn(store kv.Store) {
	a.t.Helper()
	a.close()
	a.store = store
	a.open()
	var err error
	if a.db, err = a.Database(testName); err != nil {
		a.t.Fatal(err)
	}
}

func (a *aged) open() {
	a.t.Helper()
	r, err := Open(a.store, Config{Clock: a.clock, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		a.t.Fatal(err)
	}
	_ = r.deleting.Acquire(context.Background()) // so that only the test deletes expired rows
	a.Registry = r
}

func (a *aged) close() {
	if err := a.Close(); err != nil {
		a.t.Error(err)
	}
}

func (a *aged) clock() time.Time { return time.UnixMicro(a.now.Add(a.lag.Load())).UTC() }

// TestRowDeletion runs the scripts in testdata/row_deletion.
//
//	ddl | dml [tx=NAME]   runs statements, one a line; dml runs each in its own transaction, or all in the open
//	                      transaction NAME
//	end NAME              commits an open transaction
//	clock DURATION        advances the clock
//	pass                  makes a pass over the tables; prints the tables ROW_DELETION_POLICIES and TASKS of
//	                      SPANNER_SYS, with times as ages
//	collect               collects old versions; prints the same two tables
//	query                 prints rows
//	restart               closes the registry and opens it again; prints the same two tables
func TestRowDeletion(t *testing.T) {
	datadriven.Walk(t, "testdata/row_deletion", func(t *testing.T, path string) {
		a := newAged(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := a.run(d)
			if err != nil {
				return fmt.Sprintf("%s%s: %v\n", out, usererror.CodeOf(err), err)
			}
			return out
		})
	})
}

func (a *aged) run(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "ddl":
		return "", a.db.UpdateSchema(context.Background(), strings.Split(d.Input, "\n"), nil)
	case "dml":
		return "", a.dml(d)
	case "end":
		name := d.CmdArgs[0].Key
		_, err := a.txs[name].Commit(context.Background(), nil, txn.CommitOptions{})
		delete(a.txs, name)
		return "", err
	case "clock":
		step, err := time.ParseDuration(d.CmdArgs[0].Key)
		a.now.Add(step.Microseconds())
		return "", err
	case "pass":
		a.db.expiry.Pass(context.Background())
		return a.progress(), nil
	case "collect":
		err := a.db.collect(context.Background())
		return a.progress(), err
	case "query":
		return a.query(d.Input)
	case "restart":
		a.close()
		a.open()
		var err error
		a.db, err = a.Database(testName)
		return a.progress(), err
	}
	return "", fmt.Errorf("unknown command %s", d.Cmd)
}

func (a *aged) dml(d *datadriven.TestData) error {
	var name string
	d.MaybeScanArgs(a.t, "tx", &name)
	if name != "" && a.txs[name] == nil {
		a.txs[name] = a.db.Transactions().Begin(txn.Options{})
	}
	for _, sql := range strings.Split(d.Input, "\n") {
		var err error
		if tx := a.txs[name]; tx != nil {
			err = a.execute(tx, sql)
		} else {
			err = a.db.jobs.Transact(context.Background(), func(w table.Writer) error { return a.execute(w, sql) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *aged) execute(w table.Writer, sql string) error {
	s, err := a.db.Prepare(context.Background(), a.db.Catalog(), sql, nil, prepare.Options{})
	if err != nil {
		return err
	}
	params := make([]value.Value, len(s.Plan.Params)) // the values of literals that the plan has replaced by parameters
	for i := range params {
		params[i], _ = s.Literal(i)
	}
	rows, err := s.Run(context.Background(), prepare.Run{Writer: w, Params: params}, a.clock())
	if err != nil {
		return err
	}
	_, err = drain(rows)
	return err
}

// query runs a query and prints the rows. It prints a timestamp as its age relative to the clock.
func (a *aged) query(sql string) (string, error) {
	ctx := context.Background()
	s, err := a.db.Prepare(ctx, a.db.Catalog(), sql, nil, prepare.Options{})
	if err != nil {
		return "", err
	}
	snapshot, err := a.db.Transactions().Snapshot(ctx, txn.Bound{})
	if err != nil {
		return "", err
	}
	rows, err := s.Run(ctx, prepare.Run{View: snapshot}, a.clock())
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var out strings.Builder
	for more := true; more; {
		if more, err = rows.Next(); err != nil {
			return "", err
		}
		if more {
			a.printRow(&out, rows)
		}
	}
	return out.String(), nil
}

func (a *aged) printRow(out *strings.Builder, rows exec.Rows) {
	for _, v := range rows.Values(nil) {
		fmt.Fprintf(out, "%s ", a.text(v))
	}
	out.WriteByte('\n')
}

func (a *aged) text(v value.Value) string {
	switch {
	case v.IsNull():
		return "NULL"
	case v.Kind() == value.Int64:
		return fmt.Sprint(v.AsInt64())
	case v.Kind() == value.Timestamp:
		return a.clock().Sub(v.AsTime()).Round(time.Second).String() + " ago"
	}
	return v.AsString()
}

func (a *aged) progress() string {
	var out strings.Builder
	for _, name := range []string{"SPANNER_SYS.ROW_DELETION_POLICIES", "SPANNER_SYS.TASKS"} {
		for _, row := range systemRows(a.t, a.db, name) {
			for _, v := range row {
				fmt.Fprintf(&out, "%s ", a.text(v))
			}
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// fill inserts rows, in commits of table.ChunkRows each. row returns the values of row i.
func (a *aged) fill(name string, rows int, row func(i int) []value.Value) {
	a.t.Helper()
	t := a.db.Catalog().Table(name)
	for i := 0; i < rows; i += table.ChunkRows {
		m := table.Mutation{Op: table.Insert, Table: t, Columns: t.Columns}
		for j := i; j < min(i+table.ChunkRows, rows); j++ {
			m.Rows = append(m.Rows, row(j))
		}
		err := a.db.jobs.Transact(context.Background(), func(w table.Writer) error {
			_, err := table.Apply(context.Background(), w, table.NewDescriptors(a.db.Catalog()), []table.Mutation{m}, a.clock())
			return err
		})
		if err != nil {
			a.t.Fatal(err)
		}
	}
}

func (a *aged) count(sql string) string {
	a.t.Helper()
	out, err := a.query(sql)
	if err != nil {
		a.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// TestRowDeletionTooLarge checks what happens to an expired row with so many children that one transaction cannot
// delete them all. The row must stay and be counted as undeletable, while its neighbours are deleted. Once its children
// have expired and are deleted, the row must be deleted, too.
func TestRowDeletionTooLarge(t *testing.T) {
	a := newAged(t,
		"CREATE TABLE Parents (Id INT64, Ts TIMESTAMP) PRIMARY KEY (Id), ROW DELETION POLICY (OLDER_THAN(Ts, INTERVAL 1 DAY))",
		"CREATE TABLE Children (Id INT64, N INT64, Ts TIMESTAMP) PRIMARY KEY (Id, N), INTERLEAVE IN PARENT Parents ON DELETE CASCADE",
		"CREATE INDEX ByN ON Children(N)")
	stamp := value.OfTime(a.clock())
	a.fill("Parents", 150, func(i int) []value.Value { return []value.Value{value.OfInt64(int64(i)), stamp} })
	a.fill("Children", table.MaxMutations, func(i int) []value.Value {
		return []value.Value{value.OfInt64(7), value.OfInt64(int64(i)), stamp}
	})
	a.now.Add((25 * time.Hour).Microseconds())
	a.db.expiry.Pass(context.Background())
	if got := a.count("SELECT Id FROM Parents"); got != "7" {
		t.Errorf("left: %s", got)
	}
	rows := a.db.expiry.Policies()
	if rows[0].Undeletable != 1 || !rows[0].MinUndeletable.Equal(a.clock().Add(-25*time.Hour)) {
		t.Errorf("%+v", rows[0])
	}
	if err := a.db.UpdateSchema(context.Background(), []string{"ALTER TABLE Children ADD ROW DELETION POLICY (OLDER_THAN(Ts, INTERVAL 0 DAY))"}, nil); err != nil {
		t.Fatal(err)
	}
	a.db.expiry.Pass(context.Background())
	for _, name := range []string{"Parents", "Children", "Children@{FORCE_INDEX=ByN}"} {
		if got := a.count("SELECT COUNT(*) FROM " + name); got != "0" {
			t.Errorf("%s rows left in %s", got, name)
		}
	}
	if rows = a.db.expiry.Policies(); rows[0].Undeletable != 0 || rows[1].Undeletable != 0 {
		t.Errorf("%+v", rows)
	}
}

// TestRowDeletionBesideTransactions runs passes while users read expired rows and set their timestamps anew, each user
// in transactions of its own. No user's transaction may be aborted, and no row with a new timestamp may be deleted.
func TestRowDeletionBesideTransactions(t *testing.T) {
	a := newAged(t,
		"CREATE TABLE T (K INT64, N INT64, Ts TIMESTAMP) PRIMARY KEY (K), ROW DELETION POLICY (OLDER_THAN(Ts, INTERVAL 1 DAY))",
		"CREATE INDEX ByTs ON T(Ts)", "CREATE INDEX ByN ON T(N)")
	const rows, users = 4000, 4
	stamp := value.OfTime(a.clock())
	a.fill("T", rows, func(i int) []value.Value { return []value.Value{value.OfInt64(int64(i)), value.OfInt64(0), stamp} })
	a.now.Add((48 * time.Hour).Microseconds())
	fresh := value.OfTime(a.clock())
	c := a.db.Catalog()
	tab := c.Table("T")
	var wg sync.WaitGroup
	refreshed := make([]int, users)
	for u := range users {
		wg.Go(func() {
			for k := rows - 1 - u; k >= 0; k -= 3 * users {
				ok, err := a.refresh(tab, int64(k), fresh)
				if err != nil {
					t.Errorf("user %d, row %d: %v", u, k, err)
					return
				}
				if ok {
					refreshed[u]++
				}
			}
		})
	}
	for range 3 {
		a.db.expiry.Pass(context.Background())
	}
	wg.Wait()
	a.db.expiry.Pass(context.Background())
	want := 0
	for _, n := range refreshed {
		want += n
	}
	for _, name := range []string{"T", "T@{FORCE_INDEX=ByTs}", "T@{FORCE_INDEX=ByN}"} {
		if got := a.count("SELECT COUNT(*) FROM " + name); got != fmt.Sprint(want) {
			t.Errorf("%s rows in %s, refreshed were %d", got, name, want)
		}
	}
	t.Logf("%d of %d rows were refreshed in time", want, rows)
}

// refresh reads a row and sets its timestamp, in one transaction without retries. ok is false if the row does not
// exist.
func (a *aged) refresh(t *schema.Table, k int64, stamp value.Value) (ok bool, err error) {
	ctx := context.Background()
	tx := a.db.Transactions().Begin(txn.Options{})
	defer tx.Rollback()
	layout := table.TableLayout(t)
	key := layout.AppendKey(nil, []value.Value{value.OfInt64(k)})
	if _, ok, err = tx.Get(ctx, key, table.LockShared); err != nil || !ok {
		return false, err
	}
	m := table.Mutation{Op: table.Update, Table: t, Columns: []*schema.Column{t.Columns[0], t.Columns[2]}, Rows: [][]value.Value{{value.OfInt64(k), stamp}}}
	_, err = tx.Commit(ctx, func(w table.Writer) error {
		_, err := table.Apply(ctx, w, table.NewDescriptors(a.db.Catalog()), []table.Mutation{m}, a.clock())
		return err
	}, txn.CommitOptions{})
	return true, err
}

// TestRowDeletionEnds checks that a pass with the catalog from before a schema change fails and deletes nothing. It
// also checks that a pass ends when the database is dropped, and that the store then keeps nothing of the database.
func TestRowDeletionEnds(t *testing.T) {
	a := newAged(t, "CREATE TABLE T (K INT64, Ts TIMESTAMP) PRIMARY KEY (K), ROW DELETION POLICY (OLDER_THAN(Ts, INTERVAL 1 DAY))")
	stamp := value.OfTime(a.clock())
	a.fill("T", 5000, func(i int) []value.Value { return []value.Value{value.OfInt64(int64(i)), stamp} })
	a.now.Add((48 * time.Hour).Microseconds())
	old := a.db.Catalog()
	if err := a.db.UpdateSchema(context.Background(), []string{"ALTER TABLE T DROP ROW DELETION POLICY"}, nil); err != nil {
		t.Fatal(err)
	}
	wantCode(t, a.db.expiry.PassTable(context.Background(), old, old.Table("T")), codes.Aborted)
	if got := a.count("SELECT COUNT(*) FROM T"); got != "5000" {
		t.Errorf("%s rows left after the policy had been dropped", got)
	}
	if err := a.db.UpdateSchema(context.Background(), []string{"ALTER TABLE T ADD ROW DELETION POLICY (OLDER_THAN(Ts, INTERVAL 1 DAY))"}, nil); err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{})
	a.db.background.Go(func(ctx context.Context) {
		close(began)
		a.db.expiry.Pass(ctx)
	})
	<-began
	if err := dropDatabase(a.Registry); err != nil {
		t.Fatal(err)
	}
	a.nothingLeft()
}

// nothingLeft fails the test if the store has any data of the dropped database.
func (a *aged) nothingLeft() {
	a.t.Helper()
	it, err := a.store.NewIter(nil, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	defer it.Close()
	space := binary.BigEndian.AppendUint32(nil, uint32(a.db.space))
	horizon := append([]byte("mvcc/horizon/"), space...)
	for ok := it.First(); ok; ok = it.Next() {
		if bytes.HasPrefix(it.Key(), space) || bytes.Contains(it.Key(), horizon) || bytes.Contains(it.Key(), []byte(testName)) {
			a.t.Errorf("left of a dropped database: %q", it.Key())
		}
	}
}
