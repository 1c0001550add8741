package database

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/value"
)

// atEverySync makes a registry and passes it to the function work. For each sync of a file while work runs, it keeps
// the files that a crash of the machine would leave at that sync. Afterwards it passes each of these sets of files to
// the function check, and also the files that a crash after the end of work would leave.
func atEverySync(t *testing.T, work func(b *bed), check func(fs *vfs.MemFS)) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	var mu sync.Mutex
	var crashed []*vfs.MemFS
	armed := false
	b := open(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if armed && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo) {
			crashed = append(crashed, mem.CrashClone(vfs.CrashCloneCfg{}))
		}
		return nil
	})))
	arm := func(on bool) { mu.Lock(); armed = on; mu.Unlock() }
	if _, err := b.CreateDatabase(context.Background(), testName+"2", []string{"CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"}); err != nil {
		t.Fatal(err)
	}
	arm(true)
	work(b)
	arm(false)
	crashed = append(crashed, mem.CrashClone(vfs.CrashCloneCfg{}))
	if len(crashed) < 3 {
		t.Fatalf("only %d syncs", len(crashed))
	}
	for _, fs := range crashed {
		check(fs)
	}
}

// TestOrphans interrupts the creation and the drop of a database at each sync. Afterwards there must be a complete
// database, or no data of it at all.
func TestOrphans(t *testing.T) {
	whole, none := 0, 0
	atEverySync(t, func(b *bed) {
		var err error
		if b.db, err = b.CreateDatabase(context.Background(), testName, []string{"CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.db.AddSessions([]Session{{ID: "s"}}), b.insert("T", rowsOf(10)...)); err != nil {
			t.Fatal(err)
		}
		if err := dropDatabase(b.Registry); err != nil {
			t.Fatal(err)
		}
		// These calls are like those of requests that found the database before the drop.
		wantCode(t, b.db.SetDropProtection(true), codes.NotFound)
		wantCode(t, b.insert("T", rowsOf(20)...), codes.NotFound)
	}, func(fs *vfs.MemFS) {
		b := open(t, fs)
		defer b.shut(b.store)
		if _, err := b.Database(testName); err == nil {
			whole++
			return
		}
		none++
		it, err := b.store.NewIter(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			key := it.Key()
			if bytes.HasPrefix(key, []byte{0, 0, 0, 2}) || bytes.HasPrefix(key[4:], []byte(meta.Orphan)) || bytes.Contains(key, []byte("/2/")) {
				t.Errorf("left of a database: %q", key)
			}
		}
	})
	if whole == 0 || none < 3 {
		t.Errorf("the database was there %d times and was not %d times", whole, none)
	}
}

// TestDropRefused makes the store refuse to drop a database. The database must keep all of its data and stay usable.
func TestDropRefused(t *testing.T) {
	a := newAged(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	store := &disktest.Refusing{Store: a.store}
	a.reopenOn(store)
	a.fill("T", 10, func(i int) []value.Value { return []value.Value{value.OfInt64(int64(i)), value.OfInt64(1)} })
	drop := func() error { return dropDatabase(a.Registry) }
	for range 2 {
		store.When(func() bool { return true })
		if err := drop(); !errors.Is(err, kv.ErrRefused) {
			t.Fatalf("drop on a full store: %v", err)
		}
		store.When(nil)
		if err := a.db.UpdateSchema(context.Background(), []string{"CREATE INDEX IF NOT EXISTS ByV ON T(V)"}, nil); err != nil {
			t.Error(err)
		}
		if n := a.count("SELECT COUNT(*) FROM T@{FORCE_INDEX=ByV}"); n != "10" || a.db.Dropped() {
			t.Errorf("%s rows", n)
		}
		a.reopenOn(store)
	}
	if err := drop(); err != nil {
		t.Fatal(err)
	}
	a.nothingLeft()
}
