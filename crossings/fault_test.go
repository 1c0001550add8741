package crossings

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	stored "github.com/crowfoot-db/crowfoot/table"
)

const (
	upkeep     = "time"
	collection = "collection"
	restarted  = "restart"
	killed     = "kill"
	fullDisk   = "full disk"
	checked    = "check"
	checkpoint = "checkpoint"
)

func init() {
	add(feature{name: upkeep, happen: func(w *world) {
		w.happened(of(upkeep), 0)
		w.advance(time.Duration(1+w.rng.IntN(40)) * time.Second)
	}})
	add(feature{name: collection, happen: (*world).collect})
	add(feature{name: oldTransaction, happen: (*world).age})
	add(feature{name: restarted, happen: (*world).restart})
	add(feature{name: killed, happen: (*world).kill})
	add(feature{name: fullDisk, happen: (*world).fillDisk})
	add(feature{name: checked, alone: true, happen: func(w *world) { w.check(w.disk.Crash(vfs.CrashCloneCfg{})) }})
	add(feature{name: checkpoint, alone: true, happen: (*world).copyFiles})
}

// collect lets time pass until old versions are collected. During this time, open transactions read again and again,
// so that they do not become idle.
func (w *world) collect() {
	w.happened(of(collection), 0)
	for range 2 {
		w.advance(25 * time.Minute)
		for _, tx := range append([]*transaction(nil), w.open...) {
			tx.read()
		}
	}
	w.advance(25 * time.Minute)
}

// age begins transactions, lets them become old, and then commits them. By then the server no longer keeps the record
// of what other transactions have written since the old ones began. So the server may have to refuse old transactions,
// but must not commit them wrongly.
func (w *world) age() {
	for range 2 {
		w.openOne()
	}
	for _, tx := range slices.Clone(w.open) {
		tx.write()
	}
	for range 3 {
		w.writeOne()
	}
	w.collect()
	for _, tx := range slices.Clone(w.open) {
		if len(tx.operations) == 0 {
			tx.write()
		}
		w.met.count(of(oldTransaction, collection, tx.mode))
	}
	w.endAll()
}

func (w *world) restart() {
	w.note("-- restart")
	w.happened(of(restarted), 0)
	if err := w.stop(); err != nil {
		w.fail("%v", err)
	}
	w.boot(w.disk)
}

// kill kills the server in the middle of a write or a schema change.
func (w *world) kill() {
	w.endAll()
	var left *disktest.Disk
	calls, config := w.rng.IntN(30), vfs.CrashCloneCfg{UnsyncedDataPercent: w.rng.IntN(101), RNG: w.rng}
	w.disk.Fail(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo, errorfs.OpRename:
			if calls--; calls == 0 {
				left = w.disk.Crash(config)
			}
		}
		return nil
	})
	before, ddl := w.now(), w.db.DDL()
	switch w.rng.IntN(3) {
	case 0:
		w.changeOne()
	case 1:
		if x := w.mutate(); x != nil {
			w.do(x)
		}
	case 2:
		if x := w.runDML(); x != nil {
			w.do(x)
		}
	}
	w.disk.Fail(nil)
	midst := left != nil
	if !midst {
		left = w.disk.Crash(config)
	}
	w.note("-- kill, in the midst %t", midst)
	after := w.db.DDL()
	w.crash(left)
	err := w.agrees(w.now().m)
	if !slices.Equal(w.db.DDL(), after) {
		err = fmt.Errorf("the schema is %q", w.db.DDL())
	}
	if err != nil {
		if !midst {
			w.fail("after a kill: %v", err)
			return
		}
		if again := w.agrees(before.m); again != nil || !slices.Equal(w.db.DDL(), ddl) {
			w.fail("after a kill in the midst of it: %v, and not as before: %v", err, again)
			return
		}
		w.note("-- as before it")
		for w.now() != before {
			w.states = w.states[:len(w.states)-1]
		}
		before.until = time.Time{}
	}
	w.happened(of(killed), 0)
}

// fillDisk lets the disk be full for a while.
func (w *world) fillDisk() {
	w.endAll()
	w.note("-- the disk is full")
	w.happened(of(fullDisk), 0)
	w.disk.Leave(4 << 20) // less than the store wants to keep free, so that it refuses ordinary commits
	for range 600 {
		if w.store.Writable() != nil {
			break
		}
		time.Sleep(time.Second)
	}
	if x := w.mutate(); x != nil && w.store.Writable() != nil {
		after := w.now().m.clone()
		for _, o := range x.operations {
			_ = after.apply(o, x.features)
		}
		if _, err := x.run(); err == nil && !sameRows(w.now().m, after) {
			w.fail("on a full disk %s succeeds", text(x.operations))
		} else if code := status.Code(err); code == codes.Internal || code == codes.Unknown {
			w.fail("on a full disk: %v", err)
		}
	}
	for range 3 {
		w.readOne()
	}
	w.disk.Empty()
	for range 600 {
		if w.store.Writable() == nil {
			return
		}
		time.Sleep(time.Second)
	}
	w.fail("the store takes no writes, though there is room: %v", w.store.Writable())
}

// check verifies the stored data in the same way as the command crowfoot check.
func (w *world) check(files *disktest.Disk) {
	w.t.Helper()
	w.note("-- check")
	store, err := pebble.OpenToRead(dataDir, files)
	if err != nil {
		w.fail("check: %v", err)
		return
	}
	defer store.Close()
	err = database.Verify(context.Background(), store, database.Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, database.Verification{
		Begin: func(string, string) {},
		Found: func(_ string, f stored.Finding) { w.fail("check: %+v", f) },
	})
	if err != nil {
		w.fail("check: %v", err)
	}
	w.countAll(checked)
}

// countAll counts, for each table, that the feature with the given name has occurred together with the features of the
// table.
func (w *world) countAll(name string) {
	m := w.now().m
	for _, t := range m.tables {
		g := &target{t: t, name: t.name}
		for _, c := range t.columns {
			g.columns = append(g.columns, c.name)
		}
		s := w.targetFeatures(g)(m)
		for _, x := range t.indexes {
			s = s.with(x.features)
		}
		w.met.count(s.and(name))
	}
}

// copyFiles makes a checkpoint of the store, and starts a server on the copy.
func (w *world) copyFiles() {
	w.note("-- checkpoint")
	to := w.newName("copied")
	if err := w.store.Checkpoint(w.ctx, to); err != nil {
		w.fail("checkpoint: %v", err)
		return
	}
	p, err := start(w.disk, to)
	if err != nil {
		w.fail("checkpoint: %v", err)
		return
	}
	own := w.process
	w.process = p
	if err := w.agrees(w.now().m); err != nil {
		w.fail("in a checkpoint: %v", err)
	}
	w.process = own
	if err := p.stop(); err != nil {
		w.fail("checkpoint: %v", err)
	}
	if err := w.disk.RemoveAll(to); err != nil {
		w.fail("checkpoint: %v", err)
	}
	w.countAll(checkpoint)
}
