package database

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/database/copies"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// copied is a database whose clock moves only when the test moves it. The test, not the database's own goroutine, runs
// the upkeep of the columnar copies.
type copied struct{ *aged }

func newCopied(t *testing.T, statements ...string) copied {
	t.Helper()
	c := copied{newAged(t)}
	c.hold() // before there is a table that the upkeep might copy
	t.Cleanup(c.letGo)
	if len(statements) > 0 {
		if err := c.db.UpdateSchema(t.Context(), statements, nil); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// hold stops the background upkeep until letGo is called.
func (c copied) hold() { c.db.upkeep.StepMu.Lock() }

func (c copied) letGo() { c.db.upkeep.StepMu.Unlock() }

// upkeep makes steps of the upkeep until no work is due.
func (c copied) upkeep() error {
	for {
		pause, err := c.db.upkeep.Step(context.Background())
		if pause > 0 || err != nil {
			return err
		}
	}
}

// TestColumnarCopies runs the scripts in testdata/columnar.
//
//	ddl | dml             runs statements, one per line
//	rows TABLE from=M to=N
//	                      inserts rows with the numbers from M to N-1
//	clock DURATION        advances the clock
//	upkeep                does the work that is due, then prints COLUMNAR_POLICIES without the column USED_BYTES
//	collect               collects old versions
//	restart               closes the registry and opens it again
//
// After each command, the copies must have the same rows as their tables and indexes.
func TestColumnarCopies(t *testing.T) {
	datadriven.Walk(t, "testdata/columnar", func(t *testing.T, path string) {
		c := newCopied(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := c.run(d)
			if err != nil {
				out += fmt.Sprintf("%s: %v\n", usererror.CodeOf(err), err)
			}
			compareCopies(t, c.db)
			return out
		})
	})
}

func (c copied) run(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "rows":
		var from, to int
		d.ScanArgs(c.t, "from", &from)
		d.ScanArgs(c.t, "to", &to)
		c.fill(d.CmdArgs[0].Key, to-from, func(i int) []value.Value {
			return []value.Value{value.OfInt64(int64(from + i)), value.OfString(fmt.Sprintf("row %d", from+i))}
		})
		return "", nil
	case "upkeep":
		c.db.upkeep.Took = 0 // so the pause before the next count does not depend on the speed of the machine
		err := c.upkeep()
		return c.policies(), err
	case "collect":
		return "", c.db.collect(context.Background())
	case "restart":
		c.letGo()
		c.close()
		c.open()
		var err error
		if c.db, err = c.Database(testName); err == nil {
			c.hold()
		}
		return "", err
	}
	return c.aged.run(d)
}

// policies returns the text of the rows of SPANNER_SYS.COLUMNAR_POLICIES, without the column USED_BYTES.
func (c copied) policies() string {
	var out strings.Builder
	for _, row := range systemRows(c.t, c.db, "SPANNER_SYS.COLUMNAR_POLICIES") {
		for i, v := range row {
			if i != 5 {
				fmt.Fprintf(&out, "%s ", c.text(v))
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// compareCopies checks that a read of each columnar copy returns the same as a read of the table or index, at a strong
// snapshot.
func compareCopies(t testing.TB, d *Database) {
	t.Helper()
	ctx := context.Background()
	snapshot, err := d.Transactions().Snapshot(ctx, txn.Bound{})
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := d.CatalogAt(snapshot.Timestamp())
	if err != nil {
		t.Fatal(err)
	}
	for l := range table.Layouts(catalog) {
		p, err := columnar.Columns(l.Table, l.Index)
		if err != nil {
			t.Fatal(err)
		}
		space, _ := l.Space()
		read := columnar.Read{Projection: p, Spans: []table.Span{space}, At: snapshot.Timestamp()}
		want, got := rowsRead(t, (*columnar.Copy)(nil), snapshot, read), rowsRead(t, d.Copies().Of(l.ID()), snapshot, read)
		if want != got {
			t.Fatalf("copy of %s at %v:\n%s\nrows:\n%s", l.Name(), snapshot.Timestamp().Time(), got, want)
		}
	}
}

// rowsRead returns the text of all rows that a read of a copy returns.
func rowsRead(t testing.TB, c *columnar.Copy, view table.View, read columnar.Read) string {
	t.Helper()
	r := c.Open(context.Background(), view, read)
	defer r.Close()
	var out strings.Builder
	for {
		n, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return out.String()
		}
		for row := range n {
			for i := range read.Columns {
				a := r.Array(i)
				if a.IsNull(row) {
					out.WriteString("NULL ")
				} else {
					out.WriteString(a.ValueStr(row) + " ")
				}
			}
			out.WriteByte('\n')
		}
	}
}

// TestColumnarCopiesAfterOtherSchemaChanges checks that queued work on copies is still done if the schema changes in
// the meantime.
func TestColumnarCopiesAfterOtherSchemaChanges(t *testing.T) {
	c := newCopied(t, "ALTER DATABASE test SET OPTIONS (columnar_policy = 'enabled')",
		"CREATE TABLE T (K INT64) PRIMARY KEY (K)", "CREATE TABLE U (K INT64) PRIMARY KEY (K)")
	if _, err := c.db.upkeep.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.db.UpdateSchema(t.Context(), []string{"CREATE TABLE V (K INT64) PRIMARY KEY (K)"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.upkeep(); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.db.ColumnarPolicies() {
		if p.Chunks == 0 || p.Missing > 0 {
			t.Errorf("%+v", p)
		}
	}
}

// TestOldChunksBeforeNewCopies checks that the upkeep gives old chunks a new timestamp before it builds new copies.
func TestOldChunksBeforeNewCopies(t *testing.T) {
	c := newCopied(t, "CREATE TABLE T (K INT64) PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled')")
	if err := c.upkeep(); err != nil {
		t.Fatal(err)
	}
	c.now.Add((c.db.Retention() / 2).Microseconds())
	if err := c.db.UpdateSchema(t.Context(), []string{"CREATE TABLE U (K INT64) PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled')"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.db.upkeep.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if chunk := c.db.ColumnarPolicies()[0]; c.clock().Sub(chunk.Oldest) >= c.db.Retention()/2 {
		t.Errorf("%+v at %v", chunk, c.clock())
	}
}

// TestColumnarCountAfterSlowPass checks when changed rows are counted again after a count that took long. If the slow
// count only waited for a processor, the next one must not be delayed. If it used much CPU time, the next one must be
// delayed, but by copies.CountWithin at most, however few commits there are.
func TestColumnarCountAfterSlowPass(t *testing.T) {
	c := newCopied(t, "CREATE TABLE T (K INT64, S STRING(MAX)) PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled')")
	insert := func(k int) {
		t.Helper()
		c.fill("T", 1, func(int) []value.Value { return []value.Value{value.OfInt64(int64(k)), value.OfString("")} })
	}
	insert(0)
	if err := c.upkeep(); err != nil {
		t.Fatal(err)
	}
	insert(1)
	c.now.Add(copies.CountWithin.Microseconds())
	c.lag.Store(time.Minute.Microseconds())
	if err := c.db.upkeep.Count(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.lag.Store(0)
	if c.db.upkeep.Took >= time.Minute {
		t.Errorf("a pass over one row took %v", c.db.upkeep.Took)
	}
	c.db.upkeep.Took = time.Minute
	insert(2)
	before := c.db.ColumnarPolicies()[0].Changed
	c.now.Add(copies.CountWithin.Microseconds())
	if err := c.upkeep(); err != nil {
		t.Fatal(err)
	}
	if after := c.db.ColumnarPolicies()[0]; before != 1 || after.Changed != 2 {
		t.Errorf("%d changed rows, then %+v", before, after)
	}
}

// collecting is a context that runs a garbage collection in the middle of the code that uses the context: the first
// call of Err calls the function in the field collect.
type collecting struct {
	context.Context
	collect func()
}

func (c *collecting) Err() error {
	if collect := c.collect; collect != nil {
		c.collect = nil
		collect()
	}
	return c.Context.Err()
}

// TestCountBesideCollection checks that the count of changed rows works while a garbage collection deletes versions
// that the count has not read yet. The count must continue without these versions. It must still find the one changed
// row of each copy, since the copies' chunks are newer than the deleted versions.
func TestCountBesideCollection(t *testing.T) {
	c := newCopied(t, "CREATE TABLE A (K INT64) PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled')", "CREATE TABLE Middle (K INT64) PRIMARY KEY (K)",
		"CREATE TABLE B (K INT64) PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled')")
	insert := func() {
		for _, name := range []string{"A", "B"} {
			c.fill(name, 1, func(int) []value.Value { return []value.Value{value.OfInt64(c.now.Load())} })
		}
	}
	work := func() {
		t.Helper()
		if err := c.upkeep(); err != nil {
			t.Fatal(err)
		}
	}
	insert()
	work()
	c.now.Add((40 * time.Minute).Microseconds())
	work() // chunks get a new timestamp; changed rows are not counted, since there was no commit
	c.now.Add((30 * time.Minute).Microseconds())
	insert()
	ctx := &collecting{t.Context(), func() {
		if err := c.db.collect(t.Context()); err != nil {
			t.Error(err)
		}
	}}
	if err := c.db.upkeep.Count(ctx); err != nil || ctx.collect != nil {
		t.Fatal(err)
	}
	for _, p := range c.db.ColumnarPolicies() {
		if p.Changed != 1 || p.Missing > 0 {
			t.Errorf("%+v", p)
		}
	}
}
