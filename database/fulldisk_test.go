package database

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/database/split"
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

// TestCollectionOnFullDisk checks that a collection frees the space of a dropped table on a full disk. At that time an
// old checkpoint is due, too, and its deletion is a commit, which a full disk refuses.
func TestCollectionOnFullDisk(t *testing.T) {
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
	a.fill("T", 100, func(i int) []value.Value { return []value.Value{value.OfInt64(int64(i)), value.OfInt64(int64(i))} })
	b := &bed{t: t, Registry: a.Registry, db: a.db}
	update := PartitionedDML{Statement: b.partitionedDML("UPDATE T SET V = 0 WHERE TRUE"), Tracker: new(split.Tracker), Job: "j"}
	if _, err := a.db.PartitionedDML(t.Context(), update); err != nil {
		t.Fatal(err)
	}
	dropped := table.TableLayout(a.db.Catalog().Table("T"))
	if err := a.db.UpdateSchema(t.Context(), []string{"DROP TABLE T"}, nil); err != nil {
		t.Fatal(err)
	}
	a.now.Add((checkpointLife + time.Hour).Microseconds())
	disk.Leave(4 << 20) // suffices only for batches that may use the store's reserve
	for store.Writable() == nil {
		time.Sleep(time.Millisecond)
	}
	if err := a.db.collect(t.Context()); usererror.CodeOf(err) != codes.ResourceExhausted {
		t.Errorf("the checkpoint: %v", err)
	}
	if n := a.owned(dropped); n != 0 {
		t.Errorf("%d rows of the dropped table are still stored", n)
	}
}
