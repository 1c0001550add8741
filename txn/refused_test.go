package txn

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestRefusedCommit: a commit that the store refuses leaves its transaction open, with its writes and locks. The same
// commit succeeds once the store accepts writes. Until then, older transactions can abort the transaction, and a
// schema change does not wait for it.
func TestRefusedCommit(t *testing.T) {
	for _, opts := range []Options{{}, {ReadLock: Optimistic}, {Isolation: RepeatableRead}} {
		store := &disktest.Refusing{Store: openStore(t, vfs.NewMem(), "data")}
		clock := new(fakeClock)
		clock.micros.Store(10_000_000_000)
		m := newManager(t, store, clock.now)
		ctx := context.Background()
		commit := func(tx *Tx) error {
			_, err := tx.Commit(ctx, func(w table.Writer) error { return w.Put(ctx, key("b"), []byte("2"), nil, nil) }, CommitOptions{})
			return err
		}
		begin := func() *Tx {
			tx := m.Begin(opts)
			if err := tx.Put(ctx, key("a"), []byte("1"), nil, nil); err != nil {
				t.Fatal(err)
			}
			return tx
		}
		refused := func(tx *Tx) {
			t.Helper()
			store.When(func() bool { return true })
			for range 2 {
				if err := commit(tx); !errors.Is(err, kv.ErrRefused) {
					t.Fatalf("%+v: a full store answers %v", opts, err)
				}
			}
			store.When(nil)
			if n := tx.Stats().Keys; tx.Err() != nil || n != 1 {
				t.Errorf("%+v: after a refused commit %v, %d keys", opts, tx.Err(), n)
			}
		}
		older, tx := m.Begin(Options{}), begin()
		refused(tx)
		if err := m.ChangeSchema(ctx, schema.NewCatalog(), nothing); err != nil {
			t.Fatal(err)
		}
		if got := getAll(tx, nil, []string{"a", "b"}, table.LockShared); got != "a=1 b absent" {
			t.Errorf("%+v: the transaction reads %s", opts, got)
		}
		if err := commit(tx); err != nil {
			t.Errorf("%+v: commit, now that there is room: %v", opts, err)
		}
		tx = begin()
		refused(tx)
		if err := commit(older); err != nil || !usererror.IsAborted(tx.Err()) {
			t.Errorf("%+v: an older transaction wants the locks: %v, %v", opts, err, tx.Err())
		}
	}
}

// TestRefusedCommitKeepsWrites checks a request that writes while a Commit of the same transaction is refused. If the
// write was acknowledged, the transaction still has it afterwards.
func TestRefusedCommitKeepsWrites(t *testing.T) {
	store := &disktest.Refusing{Store: openStore(t, vfs.NewMem(), "data")}
	m := newManager(t, store, time.Now)
	ctx := context.Background()
	commitOne(t, m, "b", "0")
	store.When(func() bool { return true })
	tx := m.Begin(Options{})
	if err := tx.Put(ctx, key("b"), []byte("1"), nil, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		val := fmt.Sprint(i)
		writing := beside(func() (mvcc.Timestamp, error) { return 0, tx.Put(ctx, key("a"), []byte(val), nil, nil) })
		if _, err := tx.Commit(ctx, nil, CommitOptions{}); !errors.Is(err, kv.ErrRefused) {
			t.Fatalf("a full store answers %v", err)
		}
		if err := (<-writing).err; err != nil {
			continue // the write came after Commit had closed the transaction, and was refused
		}
		if got, want := getAll(tx, nil, []string{"a"}, table.LockShared), "a="+val; got != want {
			t.Fatalf("a request has written %s, and the commit beside it was refused: now %s", want, got)
		}
	}
}
