package database

import (
	"context"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/table"
)

// TestVerifyColumnarCopies checks that Verify finds each kind of damage of columnar copies.
func TestVerifyColumnarCopies(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(b *bed)
		want  string // part of the text of a finding; "" if there must be no finding
	}{
		{"sound", func(*bed) {}, ""},
		{"a lost blob", func(b *bed) { b.spoil("columnar/column/", func(_, _ []byte) ([]byte, []byte) { return nil, nil }) }, "it is not there"},
		{"a changed blob", func(b *bed) {
			b.spoil("columnar/column/", func(key, val []byte) ([]byte, []byte) { val[len(val)-1] ^= 1; return key, val })
		}, "wrong checksum"},
		{"a blob of no chunk", func(b *bed) {
			b.spoil("columnar/chunk/", func(_, _ []byte) ([]byte, []byte) { return nil, nil })
		}, "belongs to no chunk"},
		{"a row that was changed under its timestamp", func(b *bed) {
			b.write(func(w table.Writer) error {
				return w.Put(context.Background(), b.row("T", 1), storedRow(b, "T", map[string]int64{"N": 99}), nil, nil)
			})
			b.backdate(b.row("T", 1))
		}, "is not as in the table"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := create(t, "CREATE TABLE T (K INT64, N INT64) PRIMARY KEY (K)", "CREATE INDEX ByN ON T(N)")
			if err := b.insert("T", [2]int64{1, 1}, [2]int64{2, 2}); err != nil {
				t.Fatal(err)
			}
			b.alter("ALTER TABLE T SET OPTIONS (columnar_policy = 'enabled')")
			awaitCopies(t, b.db, func(rows, _ int64) bool { return rows == 4 })
			b.db.upkeep.StepMu.Lock() // from here on the upkeep must not repair the damage
			defer b.db.upkeep.StepMu.Unlock()
			test.spoil(b)
			found := strings.Join(b.verify(), "\n")
			if !strings.Contains(found, test.want) || (test.want == "") != (found == "") {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

// spoil changes the first record of key space 0 whose key begins with text. If change returns a nil key, spoil deletes
// the record.
func (b *bed) spoil(text string, change func(key, val []byte) (newKey, newVal []byte)) {
	b.t.Helper()
	start := append(make([]byte, 4), text...)
	it, err := b.store.NewIter(start, append(start[:len(start)-1:len(start)-1], start[len(start)-1]+1))
	if err != nil {
		b.t.Fatal(err)
	}
	defer it.Close()
	if !it.First() {
		b.t.Fatalf("there is no record of %s", text)
	}
	val, err := it.Value()
	if err != nil {
		b.t.Fatal(err)
	}
	batch := b.store.NewBatch()
	defer batch.Close()
	old := append([]byte(nil), it.Key()...)
	key, val := change(old, append([]byte(nil), val...))
	if key == nil {
		err = batch.Delete(old)
	} else {
		err = batch.Put(key, val)
	}
	if err == nil {
		err = batch.Commit()
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// backdate gives the second newest version of a key the value of the newest version.
func (b *bed) backdate(key []byte) {
	b.t.Helper()
	_, at, _, err := b.db.rows.Get(key, newest, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	val, _, _, err := b.db.rows.Get(key, newest, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	_, before, _, err := b.db.rows.Get(key, at-1, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	batch := b.db.rows.NewBatch()
	defer batch.Close()
	if err := batch.Put(key, val, before); err != nil {
		b.t.Fatal(err)
	}
	if err := batch.Commit(); err != nil {
		b.t.Fatal(err)
	}
}
