package database

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestUniqueBuildBesideInsert builds a UNIQUE index. Before the build writes the entry of an existing row, a
// transaction inserts another row with the same index key, and finds no duplicate. Later, when the build has compared
// all entries, the transaction commits. This commit must be aborted, since otherwise two rows would have the same key.
// That must hold for transactions that check for duplicates at the insert and for those that check at the commit.
func TestUniqueBuildBesideInsert(t *testing.T) {
	for name, opts := range map[string]txn.Options{
		"pessimistic": {}, "optimistic": {ReadLock: txn.Optimistic}, "repeatable read": {Isolation: txn.RepeatableRead},
	} {
		t.Run(name, func(t *testing.T) {
			disk, err := pebble.Open("data", vfs.NewMem())
			if err != nil {
				t.Fatal(err)
			}
			store := &betweenStore{Store: disk}
			b := &bed{t: t}
			if b.Registry, err = Open(store, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler), NoStatistics: true}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.shut(disk) })
			if b.db, err = b.CreateDatabase(t.Context(), testName, []string{"CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"}); err != nil {
				t.Fatal(err)
			}
			if err := b.insert("T", [2]int64{1, 10}); err != nil {
				t.Fatal(err)
			}
			tx := b.db.Transactions().Begin(opts)
			defer tx.Rollback()
			store.between = func() { // runs before the build writes the entry of the existing row
				if _, err := b.in(tx, "INSERT INTO T (K, V) VALUES (2, 10)"); err != nil {
					t.Error(err)
				}
			}
			commit := func() error {
				_, err := tx.Commit(context.Background(), nil, txn.CommitOptions{})
				return err
			}
			changed := b.db.UpdateSchema(t.Context(), []string{"CREATE UNIQUE INDEX Once ON T(V)"}, &schemachange.Operation{Progress: func(p schemachange.Progress) {
				if p.Percent >= 50 && p.Percent < 100 { // by now, the build has compared all entries
					err = commit()
				}
			}})
			store.between = nil
			if changed != nil || usererror.CodeOf(err) != codes.Aborted {
				t.Errorf("the index: %v; the commit: %v", changed, err)
			}
			if n, err := b.count(t.Context(), "SELECT COUNT(*) FROM T@{FORCE_INDEX=Once}"); n != 1 || err != nil {
				t.Errorf("%d entries, %v", n, err)
			}
			if code := usererror.CodeOf(b.insert("T", [2]int64{3, 10})); code != codes.AlreadyExists && code != codes.FailedPrecondition {
				t.Errorf("the same key again: %v", code)
			}
		})
	}
}
