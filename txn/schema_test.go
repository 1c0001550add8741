package txn

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// catalogs returns the catalogs that result from applying the statements in order: one after each statement.
func catalogs(t *testing.T, statements ...string) (list []*schema.Catalog) {
	t.Helper()
	c := schema.NewCatalog()
	for _, s := range statements {
		next, _, err := c.Apply(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		c = next
		list = append(list, c)
	}
	return list
}

// writing returns the dependencies of a statement that writes to the named table.
func writing(c *schema.Catalog, name string) *schema.Dependencies {
	d := new(schema.Dependencies)
	d.Write(c, c.Table(name), true)
	return d
}

func nothing(mvcc.Timestamp, func(kv.Batch) error) error { return nil }

// TestChangeSchema checks that a schema change waits for commits in flight, and that later commits and statements wait
// for the schema change. The rows that the schema change writes have its timestamp and become visible at its end.
// Transactions that do not depend on the altered objects stay open.
func TestChangeSchema(t *testing.T) {
	m, s, _ := gated(t)
	ctx := context.Background()
	holder, waiter := m.Begin(Options{}), m.Begin(Options{})
	lockKey(t, holder, "x")
	waiting := beside(func() (mvcc.Timestamp, error) { return 0, waiter.Put(ctx, key("x"), nil, nil, nil) })
	awaitWaiting(m, 1)
	flying := beside(func() (mvcc.Timestamp, error) { return commitKey(m, "a", "1") })
	release := <-s.arrived

	begun, written := make(chan mvcc.Timestamp), make(chan mvcc.Timestamp)
	goOn := make(chan error)
	changed := beside(func() (mvcc.Timestamp, error) {
		return 0, m.ChangeSchema(ctx, nil, func(ts mvcc.Timestamp, commit func(kv.Batch) error) error {
			begun <- ts
			b := m.versions.NewBatch()
			err := errors.Join(b.Put(key("schema"), []byte("new"), ts), commit(b.KV()), b.Close())
			written <- ts
			return errors.Join(err, <-goOn)
		})
	})
	awaitGate(m)
	select {
	case <-begun:
		t.Error("the change did not wait for a commit that was under way")
	default:
	}
	release <- nil
	committed := await(t, flying)
	if committed.err != nil {
		t.Error(committed.err)
	}
	ts := <-begun
	if ts <= committed.ts {
		t.Errorf("change at %d, commit before it at %d", ts, committed.ts)
	}

	limited, cancel := context.WithCancel(ctx)
	cancel()
	if err := m.ChangeSchema(limited, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a second change did not wait: %v", err)
	}
	late := m.Begin(Options{})
	lockKey(t, late, "late")
	if _, err := late.Commit(limited, nil, CommitOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a commit did not wait for the change: %v", err)
	}
	if err := late.DependOn(limited, new(schema.Dependencies), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a statement did not wait for the change: %v", err)
	}
	if got := strong(t, m, "a"); got != "a=1" {
		t.Errorf("a snapshot during the change sees %s", got)
	}
	release = <-s.arrived
	s.open = true
	release <- nil
	<-written
	if got := strong(t, m, "schema"); got != "schema absent" {
		t.Errorf("the change is seen before its end: %s", got)
	}
	lateCommit := beside(func() (mvcc.Timestamp, error) { return late.Commit(ctx, nil, CommitOptions{}) })
	goOn <- nil
	if o := await(t, changed); o.err != nil {
		t.Error(o.err)
	}
	if o := await(t, lateCommit); o.err != nil || o.ts < ts {
		t.Errorf("a commit that waited for the change at %d: %+v", ts, o)
	}
	if _, err := holder.Commit(ctx, nil, CommitOptions{}); err != nil {
		t.Error(err)
	}
	if o := await(t, waiting); o.err != nil {
		t.Error(o.err)
	}
	if got := strong(t, m, "schema"); got != "schema=new" {
		t.Errorf("after the change: %s", got)
	}
}

// awaitGate returns once a schema change has begun to wait for commits.
func awaitGate(m *Manager) {
	for !m.changing() {
		runtime.Gosched()
	}
}

func (m *Manager) changing() bool {
	m.locks.mu.Lock()
	defer m.locks.mu.Unlock()
	return m.schema.open != nil
}

// TestChangeSchemaFails: a schema change whose function returns an error, or panics, leaves the schema and the
// transactions as they were.
func TestChangeSchemaFails(t *testing.T) {
	m, _ := manual(t)
	ctx := context.Background()
	list := catalogs(t, "CREATE TABLE A (K INT64) PRIMARY KEY (K)", "ALTER TABLE A ADD COLUMN V INT64")
	m.schema.catalog.Store(list[0])
	tx := m.Begin(Options{})
	if err := tx.DependOn(ctx, writing(list[0], "A"), list[0]); err != nil {
		t.Fatal(err)
	}
	if err := m.ChangeSchema(ctx, list[1], func(mvcc.Timestamp, func(kv.Batch) error) error { return errors.New("no") }); err == nil || err.Error() != "no" {
		t.Errorf("a failed change: %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = m.ChangeSchema(ctx, list[1], func(mvcc.Timestamp, func(kv.Batch) error) error { panic("bug") })
	}()
	if _, err := tx.Commit(ctx, nil, CommitOptions{}); err != nil {
		t.Error(err)
	}
	commitOne(t, m, "a", "1")
}

// TestChangeSchemaUnknown: if it is unknown whether the store has kept the batch of a schema change, the change does
// not become visible, and every later commit fails. If the store has refused the batch, later commits succeed.
func TestChangeSchemaUnknown(t *testing.T) {
	for _, unknown := range []bool{false, true} {
		m, s, _ := gated(t)
		ctx := context.Background()
		list := catalogs(t, "CREATE TABLE A (K INT64) PRIMARY KEY (K)")
		failure := fmt.Errorf("no room: %w", kv.ErrRefused)
		if unknown {
			failure = errors.New("sync failed")
		}
		before, at := m.oracle.Visible(), mvcc.Timestamp(0)
		changed := beside(func() (mvcc.Timestamp, error) {
			return 0, m.ChangeSchema(ctx, list[0], func(ts mvcc.Timestamp, commit func(kv.Batch) error) error {
				at = ts
				b := m.versions.NewBatch()
				return errors.Join(b.Put(key("schema"), []byte("new"), ts), commit(b.KV()), b.Close())
			})
		})
		release := <-s.arrived
		s.open = true
		release <- failure
		if o := await(t, changed); !errors.Is(o.err, failure) || m.schema.catalog.Load() == list[0] {
			t.Errorf("a change whose commit answers %v: %v, adopted %v", failure, o.err, m.schema.catalog.Load() == list[0])
		}
		_, err := commitKey(m, "a", "1")
		if (err != nil) != unknown {
			t.Errorf("after a change whose commit answered %v: %v", failure, err)
		}
		if visible := m.oracle.Visible(); unknown && (visible != before || visible >= at) {
			t.Errorf("%d is visible, the change whose outcome is unknown was at %d", visible, at)
		}
	}
}

// TestChangeSchemaGivesUp checks a schema change whose context ends while the change waits for a commit. The change
// returns an error, and later commits succeed.
func TestChangeSchemaGivesUp(t *testing.T) {
	m, s, _ := gated(t)
	flying := beside(func() (mvcc.Timestamp, error) { return commitKey(m, "a", "1") })
	release := <-s.arrived
	ctx, cancel := context.WithCancel(context.Background())
	changed := beside(func() (mvcc.Timestamp, error) {
		return 0, m.ChangeSchema(ctx, nil, func(mvcc.Timestamp, func(kv.Batch) error) error { t.Error("ran"); return nil })
	})
	awaitGate(m)
	cancel()
	if o := await(t, changed); !errors.Is(o.err, context.Canceled) {
		t.Errorf("change: %v", o.err)
	}
	release <- nil
	if o := await(t, flying); o.err != nil {
		t.Error(o.err)
	}
	s.open = true
	commitOne(t, m, "a", "2")
}

// TestDependOn: a schema change aborts the transactions that depend on an altered object, and no others. Requests
// that wait for the locks of an aborted transaction get them.
func TestDependOn(t *testing.T) {
	for _, mode := range modes {
		m, _ := manual(t)
		ctx := context.Background()
		list := catalogs(t, "CREATE TABLE A (K INT64) PRIMARY KEY (K)", "CREATE TABLE B (K INT64) PRIMARY KEY (K)", "ALTER TABLE A ADD COLUMN V INT64")
		before, after := list[1], list[2]
		m.schema.catalog.Store(before)
		tx := map[string]*Tx{}
		for _, name := range []string{"unused", "A", "B"} {
			tx[name] = m.Begin(mode.options)
			if c := before; name != "unused" {
				if err := tx[name].DependOn(ctx, writing(c, name), c); err != nil {
					t.Fatal(err)
				}
				if err := tx[name].Put(ctx, key(name), nil, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		waiter := m.Begin(Options{})
		granted := beside(func() (mvcc.Timestamp, error) { return 0, waiter.Put(ctx, key("A"), nil, nil, nil) })
		if mode.options.ReadLock != Optimistic && mode.options.Isolation == Serializable {
			awaitWaiting(m, 1)
		}
		if err := m.ChangeSchema(ctx, after, nothing); err != nil {
			t.Fatal(err)
		}
		if o := await(t, granted); o.err != nil {
			t.Error(o.err)
		}
		wantCode(t, tx["A"].Err(), codes.Aborted)
		for _, name := range []string{"unused", "B"} {
			if err := tx[name].DependOn(ctx, writing(after, "B"), after); err != nil {
				t.Errorf("%s, %s: %v", mode.name, name, err)
			}
			if _, err := tx[name].Commit(ctx, nil, CommitOptions{}); err != nil {
				t.Errorf("%s, %s: %v", mode.name, name, err)
			}
		}
		if n := m.Metrics().Aborts[AbortSchemaChange]; n != 1 {
			t.Errorf("%s: %d aborts", mode.name, n)
		}
		if len(m.schema.dependents) != 0 {
			t.Errorf("%s: transactions that have ended are still known", mode.name)
		}
	}
}

// TestDependOnOlderCatalog: the dependencies of a statement that was prepared with an older catalog must hold in the
// newest one, too.
func TestDependOnOlderCatalog(t *testing.T) {
	m, _ := manual(t)
	ctx := context.Background()
	list := catalogs(t, "CREATE TABLE A (K INT64) PRIMARY KEY (K)", "CREATE TABLE B (K INT64) PRIMARY KEY (K)", "ALTER TABLE A ADD COLUMN V INT64")
	m.schema.catalog.Store(list[2])
	wantCode(t, m.Begin(Options{}).DependOn(ctx, writing(list[1], "A"), list[1]), codes.Aborted)
	if err := m.Begin(Options{}).DependOn(ctx, writing(list[1], "B"), list[1]); err != nil {
		t.Error(err)
	}
}

// TestSnapshotOfAnOlderCatalog checks a transaction that has a snapshot when the schema changes. The transaction is
// aborted if it uses an altered table of the new catalog, because the snapshot's rows were written with the old one.
func TestSnapshotOfAnOlderCatalog(t *testing.T) {
	for _, mode := range modes[1:] {
		m, _ := manual(t)
		ctx := context.Background()
		list := catalogs(t, "CREATE TABLE A (K INT64) PRIMARY KEY (K)", "CREATE TABLE B (K INT64) PRIMARY KEY (K)", "CREATE INDEX X ON A(K DESC)")
		m.schema.catalog.Store(list[1])
		tx := m.Begin(mode.options)
		if err := tx.DependOn(ctx, writing(list[1], "B"), list[1]); err != nil {
			t.Fatal(err)
		}
		if _, _, err := tx.Get(ctx, key("b"), table.LockShared); err != nil {
			t.Fatal(err)
		}
		if err := m.ChangeSchema(ctx, list[2], nothing); err != nil {
			t.Fatal(err)
		}
		if err := tx.DependOn(ctx, writing(list[2], "B"), list[2]); err != nil {
			t.Errorf("%s: B has not changed: %v", mode.name, err)
		}
		wantCode(t, tx.DependOn(ctx, writing(list[2], "A"), list[2]), codes.Aborted)
	}
}
