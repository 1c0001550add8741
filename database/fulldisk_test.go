package database

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestSchemaChangeOnFullDisk fills the disk while a schema change runs. A change that must write must fail with an
// error that says that the disk is full. The schema must then be as before, and the data undamaged. When space is free
// again, the same statement must succeed without a restart. A change that only reads rows must succeed on the full
// disk.
func TestSchemaChangeOnFullDisk(t *testing.T) {
	for name, statement := range map[string]string{
		"index":   "CREATE INDEX ByV ON T(V)",
		"stored":  "ALTER TABLE T ADD COLUMN W INT64 AS (V + 1) STORED",
		"default": "ALTER TABLE T ADD COLUMN W INT64 NOT NULL DEFAULT (7)",
		"check":   "ALTER TABLE T ADD CONSTRAINT Small CHECK (V < 10000)",
	} {
		t.Run(name, func(t *testing.T) {
			disk := disktest.New("data", 64<<20)
			store, err := pebble.Open("data", disk)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			a := &aged{t: t, store: store}
			a.now.Store(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
			a.open()
			defer a.close()
			if a.db, err = a.CreateDatabase(t.Context(), testName, []string{"CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"}); err != nil {
				t.Fatal(err)
			}
			a.fill("T", 4*table.ChunkRows, func(i int) []value.Value { return []value.Value{value.OfInt64(int64(i)), value.OfInt64(int64(i))} })
			before := a.db.DDL()
			reports := 0
			err = a.db.UpdateSchema(t.Context(), []string{statement}, &schemachange.Operation{Progress: func(schemachange.Progress) {
				if reports++; reports == 2 {
					disk.Leave(4 << 20) // suffices only for batches that may use the store's reserve, such as an undo
					for store.Writable() == nil {
						time.Sleep(time.Millisecond)
					}
				}
			}})
			if name == "check" {
				if err != nil {
					t.Errorf("on a full disk: %v", err)
				}
				return
			}
			if usererror.CodeOf(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "is full") || !slices.Equal(a.db.DDL(), before) {
				t.Errorf("on a full disk: %v; the schema is %q", err, a.db.DDL())
			}
			if got := a.count("SELECT COUNT(*) FROM T WHERE V = K"); got != "4000" {
				t.Errorf("on a full disk %s rows are as before", got)
			}
			disk.Empty()
			for store.Writable() != nil {
				time.Sleep(time.Millisecond)
			}
			if err := a.db.UpdateSchema(t.Context(), []string{statement}, nil); err != nil {
				t.Errorf("with room again: %v", err)
			}
			b := &bed{t: t, Registry: a.Registry, db: a.db}
			for _, found := range b.verify() {
				t.Error(found)
			}
		})
	}
}
