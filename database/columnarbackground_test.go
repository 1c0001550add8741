package database

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/database/background"
)

// awaitCopies waits until the copies of a database have all rows of their tables, and a condition of the caller is
// true. The function in the parameter holds tells whether this condition is true. Its arguments are the number of rows
// in all copies and the number of changed rows among them.
func awaitCopies(t testing.TB, d *Database, holds func(rows, changed int64) bool) {
	t.Helper()
	for {
		var rows, changed, missing int64
		list := d.ColumnarPolicies()
		for _, p := range list {
			rows, changed, missing = rows+p.Rows, changed+p.Changed, missing+p.Missing
		}
		if missing == 0 && holds(rows, changed) {
			return
		}
		if !background.Sleep(t.Context(), 5*time.Millisecond) {
			t.Fatalf("copies: %+v", list)
		}
	}
}

// TestColumnarCopiesInBackground checks that the database's own goroutine keeps the copies up to date, from the
// statement that enables them to the one that disables them, and that this goroutine ends with the registry.
func TestColumnarCopiesInBackground(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, N INT64) PRIMARY KEY (K)", "CREATE INDEX ByN ON T(N)")
	for k := range int64(100) {
		if err := b.insert("T", [2]int64{k, k % 7}); err != nil {
			t.Fatal(err)
		}
	}
	b.alter("ALTER TABLE T SET OPTIONS (columnar_policy = 'enabled')")
	awaitCopies(t, b.db, func(rows, _ int64) bool { return rows == 200 })
	if err := b.insert("T", [2]int64{1000, 1}); err != nil {
		t.Fatal(err)
	}
	awaitCopies(t, b.db, func(rows, changed int64) bool { return rows == 202 || changed == 2 })
	compareCopies(t, b.db)
	b.alter("ALTER TABLE T SET OPTIONS (columnar_policy = 'disabled')")
	for copies := b.db.Copies(); len(copies.All()) > 0; {
		background.Sleep(context.Background(), time.Millisecond)
	}
	if used := b.CPU().Task(taskCopies).Used(); used == 0 {
		t.Error("the upkeep used no CPU time that was measured")
	}
}

// TestColumnarCopiesOfADroppedDatabase checks that the store keeps no records of the copies of a dropped database.
func TestColumnarCopiesOfADroppedDatabase(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, N INT64) PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled')")
	if err := b.insert("T", [2]int64{1, 1}); err != nil {
		t.Fatal(err)
	}
	awaitCopies(t, b.db, func(rows, _ int64) bool { return rows == 1 })
	if n := b.keysWith("columnar/"); n == 0 {
		t.Fatal("no copy is stored")
	}
	if err := dropDatabase(b.Registry); err != nil {
		t.Fatal(err)
	}
	if n := b.keysWith("columnar/"); n > 0 {
		t.Errorf("%d records of copies are left", n)
	}
}

// keysWith returns the number of keys of key space 0 that begin with text.
func (b *bed) keysWith(text string) (n int) {
	b.t.Helper()
	start := append(make([]byte, 4), text...)
	it, err := b.store.NewIter(start, append(start[:len(start)-1:len(start)-1], start[len(start)-1]+1))
	if err != nil {
		b.t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n
}

// TestColumnarPolicyUnderLoad checks that reads of the copies return the same as reads of the tables when the columnar
// policy is enabled and disabled while rows are written.
func TestColumnarPolicyUnderLoad(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, N INT64) PRIMARY KEY (K)", "CREATE INDEX ByN ON T(N)")
	stop, running := make(chan struct{}), new(sync.WaitGroup)
	written := b.insertBeside(stop, running)
	for range 2 {
		b.alter("ALTER TABLE T SET OPTIONS (columnar_policy = 'enabled')")
		awaitCopies(t, b.db, func(rows, _ int64) bool { return rows > 0 })
		for range 2 {
			compareCopies(t, b.db)
		}
		b.alter("ALTER TABLE T SET OPTIONS (columnar_policy = 'disabled')")
		compareCopies(t, b.db)
	}
	close(stop)
	running.Wait()
	if written.Load() == 0 {
		t.Error("nothing was written")
	}
}
