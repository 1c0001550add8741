package database

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestDropMakesRoom checks that a drop frees disk space, even if nothing is written afterwards. The space of a dropped
// database must be freed after the drop. The space of a dropped table must be freed after the schema versions with the
// table are collected.
func TestDropMakesRoom(t *testing.T) {
	const ddl = "CREATE TABLE T (K INT64, V BYTES(MAX)) PRIMARY KEY (K)"
	a := newAged(t, ddl)
	waitFor := func(holds func(tables int) bool) {
		for !holds(int(a.store.(*pebble.Store).Metrics().TablesSize)) {
			time.Sleep(time.Millisecond)
		}
	}
	const rows, rowBytes = 3000, 8000 // together 24 MB, more than Pebble keeps in memory
	random := rand.NewChaCha8([32]byte{})
	fill := func() {
		t.Helper()
		a.fill("T", rows, func(i int) []value.Value {
			v := make([]byte, rowBytes)
			_, _ = random.Read(v) // never fails
			return []value.Value{value.OfInt64(int64(i)), value.OfBytes(v)}
		})
		waitFor(func(tables int) bool { return tables >= rows*rowBytes/4 })
	}
	leaves := func() {
		waitFor(func(tables int) bool { return tables < rows*rowBytes/20 })
	}
	fill()
	if err := a.db.UpdateSchema(context.Background(), []string{"DROP TABLE T"}, nil); err != nil {
		t.Fatal(err)
	}
	a.now.Add((2 * time.Hour).Microseconds())
	if err := a.db.collect(context.Background()); err != nil {
		t.Fatal(err)
	}
	leaves()
	if err := a.db.UpdateSchema(context.Background(), []string{ddl}, nil); err != nil {
		t.Fatal(err)
	}
	fill()
	if err := dropDatabase(a.Registry); err != nil {
		t.Fatal(err)
	}
	leaves()
}
