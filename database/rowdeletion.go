package database

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Row deletion policies are applied in passes over the tables that have one. A pass looks for expired rows at a
// snapshot and deletes them in small transactions, which give way to all others and look again whether the
// rows have expired. The next pass comes after shareOfPasses times what this one took, so that a table that must be
// read from end to end costs a thousandth of a core; but soon enough for a developer to see it happen, and no later
// than in the service, where "a background process checks daily": https://cloud.google.com/spanner/docs/ttl.
// The first comes when clients of a server that has just started have been served: many servers do not live for a minute.
const (
	shareOfPasses    = 1000
	firstInterval    = 10 * time.Second
	shortestInterval = time.Minute
	longestInterval  = 24 * time.Hour
)

// What one transaction deletes: so little that its commit holds up nobody. A row with
// all that goes with it is deleted at once up to what any transaction may write.
const (
	expiredRows  = 100
	expiredBytes = 1 << 20
)

// Rows that users' transactions have locked are tried again after these pauses, and then in the next pass. If there
// are more than maxBusy of them it is better to come another time.
var busyPauses = [...]time.Duration{10 * time.Millisecond, 40 * time.Millisecond, 160 * time.Millisecond}

const maxBusy = 1000

// deletionTag is the transaction tag that the service's deletions carry.
const deletionTag = "RowDeletionPolicy"

// rowDeletion is how far the row deletion policies of a database have come.
type rowDeletion struct {
	task
	passes map[schema.TableID]pass // guarded by the task's mu
}

// pass is one that has come to the end of a table.
type pass struct {
	column schema.ColumnID // of the policy
	days   int64           // likewise
	at     time.Time       // every row of that time was looked at
	// undeletable rows could not be deleted; oldest is the oldest of their timestamps.
	undeletable int64
	oldest      time.Time
}

// deletionPolicies are the rows of SPANNER_SYS.ROW_DELETION_POLICIES.
func (d *Database) deletionPolicies() []stats.DeletionPolicy {
	work := &d.background.rowDeletion
	work.mu.Lock()
	defer work.mu.Unlock()
	var list []stats.DeletionPolicy
	for _, t := range d.Catalog().Tables {
		policy := t.RowDeletionPolicy
		if policy == nil {
			continue
		}
		row := stats.DeletionPolicy{Table: t.FullName()}
		if p := work.passes[t.ID]; p.column == policy.Column.ID && p.days == policy.Days {
			row.Processed, row.Undeletable, row.MinUndeletable = p.at, p.undeletable, p.oldest
		}
		list = append(list, row)
	}
	return list
}

// deleteExpired makes pass after pass until ctx ends. One database of the store is at it at a time.
func (d *Database) deleteExpired(ctx context.Context) {
	turn := d.registry.deleting
	interval := firstInterval
	for sleep(ctx, interval) {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return
		}
		began := d.registry.cfg.Clock()
		d.passPolicies(ctx)
		interval = d.registry.cfg.Clock().Sub(began) * shareOfPasses
		interval = min(max(interval, shortestInterval), longestInterval)
		<-turn
	}
}

// passPolicies makes a pass over every table with a policy, children before parents, which then have less to take along.
func (d *Database) passPolicies(ctx context.Context) {
	var first error
	now := d.registry.cfg.Clock()
	c := d.Catalog()
	for _, t := range slices.Backward(c.Tables) {
		if t.RowDeletionPolicy == nil || ctx.Err() != nil {
			continue
		}
		err := d.passTable(ctx, c, t)
		first = cmp.Or(first, err)
		if usererror.CodeOf(err) == codes.Internal && ctx.Err() == nil {
			d.log().Error("delete expired rows", slog.String("table", t.FullName()), slog.Any("error", err))
		}
	}
	work := &d.background.rowDeletion
	work.ran(now, cmp.Or(ctx.Err(), first))
	work.forget(c)
}

// forget forgets passes over tables that have no policy any more.
func (w *rowDeletion) forget(c *schema.Catalog) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.passes, func(id schema.TableID, _ pass) bool {
		return !slices.ContainsFunc(c.Tables, func(t *schema.Table) bool { return t.ID == id && t.RowDeletionPolicy != nil })
	})
}

func (d *Database) passTable(ctx context.Context, c *schema.Catalog, t *schema.Table) error {
	policy := t.RowDeletionPolicy
	e := &expiry{
		Database: d, catalog: c, table: t,
		before: policy.Limit(d.registry.cfg.Clock()),
		pass:   pass{column: policy.Column.ID, days: policy.Days},
	}
	err := e.run(ctx)
	if e.deleted > 0 {
		d.log().Info("deleted expired rows", slog.String("table", t.FullName()), slog.Int("rows", e.deleted))
	}
	if err == nil {
		d.background.rowDeletion.passed(t, e.pass)
	}
	return err
}

func (w *rowDeletion) passed(t *schema.Table, p pass) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.passes == nil {
		w.passes = map[schema.TableID]pass{}
	}
	w.passes[t.ID] = p
}

// expiry is one pass over one table.
type expiry struct {
	*Database
	catalog *schema.Catalog // if it changes the pass ends
	table   *schema.Table
	before  time.Time
	pass    pass
	deleted int
	busy    []table.Expired // rows that were locked
}

func (e *expiry) run(ctx context.Context) error {
	var after []byte
	for {
		began := e.registry.cfg.Clock()
		next, err := e.chunk(ctx, after)
		if err != nil {
			return err
		}
		if next == nil {
			return e.retryBusy(ctx)
		}
		after = next
		if !sleep(ctx, e.registry.cfg.Clock().Sub(began)) { // half of a core at most
			return ctx.Err()
		}
	}
}

// chunk deletes what has expired among the next rows behind a key.
func (e *expiry) chunk(ctx context.Context, after []byte) (next []byte, err error) {
	snapshot, err := e.txns.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	if e.pass.at.IsZero() {
		e.pass.at = snapshot.Timestamp().Time()
	}
	found, next, err := table.FindExpired(ctx, snapshot, e.table, e.before, after, chunkRows)
	if err != nil {
		return nil, err
	}
	return next, e.deleteAll(ctx, found)
}

func (e *expiry) deleteAll(ctx context.Context, rows []table.Expired) error {
	for batch := range slices.Chunk(rows, expiredRows) {
		if err := e.delete(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes rows together if it can, else by halves, down to those that cannot be deleted, or not now.
func (e *expiry) delete(ctx context.Context, rows []table.Expired) error {
	deleted, err := e.commit(ctx, rows)
	var refused *usererror.Error
	switch {
	case err == nil:
		e.deleted += deleted
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &refused) || e.Catalog() != e.catalog:
		return err
	case len(rows) > 1:
		half := len(rows) / 2
		if err := e.delete(ctx, rows[:half]); err != nil {
			return err
		}
		return e.delete(ctx, rows[half:])
	case refused.Code == codes.Aborted:
		e.busy = append(e.busy, rows[0])
		if len(e.busy) > maxBusy {
			return err
		}
	default:
		e.keep(rows[0])
	}
	return nil
}

// keep counts a row that cannot be deleted.
func (e *expiry) keep(r table.Expired) {
	if e.pass.undeletable == 0 || r.At.Before(e.pass.oldest) {
		e.pass.oldest = r.At
	}
	e.pass.undeletable++
}

// commit deletes rows in one transaction.
func (e *expiry) commit(ctx context.Context, rows []table.Expired) (deleted int, err error) {
	bytes := int64(expiredBytes)
	if len(rows) == 1 {
		bytes = table.MaxCommitBytes
	}
	tx := e.txns.Begin(txn.Options{Background: true, Tag: deletionTag})
	if err = tx.DependOn(ctx, schema.DependOnAll(e.catalog), e.catalog); err == nil {
		_, err = tx.Commit(ctx, func(w table.Writer) (err error) {
			deleted, err = table.DeleteExpired(ctx, w, e.table, e.before, rows, bytes)
			return err
		}, txn.CommitOptions{})
	}
	if err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	return deleted, nil
}

// retryBusy comes back to rows that were locked.
func (e *expiry) retryBusy(ctx context.Context) error {
	for _, pause := range busyPauses {
		if len(e.busy) == 0 {
			return nil
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
		rows := e.busy
		e.busy = nil
		if err := e.deleteAll(ctx, rows); err != nil {
			return err
		}
	}
	if len(e.busy) > 0 {
		return usererror.Wounded(0)
	}
	return nil
}
