package database

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// filled is a database whose table T has so many chunks of rows, and rows that a collection deletes.
func filled(t *testing.T, chunks int) *aged {
	a := newAged(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	a.fill("T", chunks*table.ChunkRows, func(i int) []value.Value { return []value.Value{value.OfInt64(int64(i)), value.OfInt64(1)} })
	if err := a.db.jobs.Transact(context.Background(), func(w table.Writer) error { return a.execute(w, "DELETE FROM T WHERE K = 0") }); err != nil {
		t.Fatal(err)
	}
	a.now.Add((2 * time.Hour).Microseconds())
	return a
}

// TestDropEndsSchemaChange: a database that is dropped while an index is filled ends that, waits for it, and leaves nothing behind.
func TestDropEndsSchemaChange(t *testing.T) {
	a := filled(t, 3)
	if err := a.db.collect(context.Background()); err != nil { // stores a horizon
		t.Fatal(err)
	}
	dropped := make(chan error, 1)
	err := a.db.UpdateSchema(context.Background(), []string{"CREATE INDEX ByV ON T(V)"}, &SchemaOperation{Progress: func(Progress) {
		if a.db.Dropped() {
			return
		}
		go func() { dropped <- a.DropDatabase(context.Background(), testName) }()
		<-a.db.background.ctx.Done()
	}})
	wantCode(t, err, codes.NotFound)
	if err := <-dropped; err != nil {
		t.Fatal(err)
	}
	a.nothingLeft()
	wantCode(t, a.db.UpdateSchema(context.Background(), []string{"DROP TABLE T"}, nil), codes.NotFound)
}

// TestCollectionBesideSchemaChange: versions are collected while an index is filled, for that may take hours.
func TestCollectionBesideSchemaChange(t *testing.T) {
	a := filled(t, 1)
	collected := false
	err := a.db.UpdateSchema(context.Background(), []string{"CREATE INDEX ByV ON T(V)"}, &SchemaOperation{Progress: func(p Progress) {
		if p.Percent == 100 || collected {
			return
		}
		before := a.db.rows.Horizon()
		if err := a.db.collect(context.Background()); err != nil {
			t.Error(err)
		}
		collected = a.db.rows.Horizon() > before
	}})
	if err != nil || !collected {
		t.Errorf("collected: %v, %v", collected, err)
	}
}
