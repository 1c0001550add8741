package database

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/job"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Row deletion policies are applied in passes over the tables that have one. A pass is a job: it looks for expired rows in a
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

// One transaction deletes so many rows at most, and writes so many bytes, so that its commit does not hold up others. A single row with
// its index entries and children may be as large as any transaction.
const (
	expiredRows  = 100
	expiredBytes = 1 << 20
)

// Rows that users' transactions have locked are tried again after these pauses, and then in the next pass. If there
// are more than maxBusy of them the pass ends.
var busyPauses = [...]time.Duration{10 * time.Millisecond, 40 * time.Millisecond, 160 * time.Millisecond}

const maxBusy = 1000

const (
	// deletionTag is the transaction tag that the service's deletions carry.
	deletionTag = "RowDeletionPolicy"
	// deletionJobs begins the names of the jobs that are passes.
	deletionJobs = "delete/"
)

// rowDeletion is how far the row deletion policies of a database have come.
type rowDeletion struct {
	task
	passes map[schema.TableID]pass // guarded by the task's mu
}

// pass is what a pass over a table has found so far; it is stored with the checkpoints of its job.
type pass struct {
	At      time.Time // every row of that time is looked at
	Deleted int       // rows
	// Undeletable rows could not be deleted; Oldest is the oldest of their timestamps.
	Undeletable int64
	Oldest      time.Time

	column schema.ColumnID // of the policy
	days   int64           // likewise
}

// deletionPolicies are the rows of SPANNER_SYS.ROW_DELETION_POLICIES.
func (d *Database) deletionPolicies() []stats.DeletionPolicy {
	work := &d.background.rowDeletion
	work.mu.Lock()
	defer work.mu.Unlock()
	var list []stats.DeletionPolicy
	for t := range d.Catalog().Tables() {
		policy := t.RowDeletionPolicy
		if policy == nil {
			continue
		}
		row := stats.DeletionPolicy{Table: t.FullName()}
		if p := work.passes[t.ID]; p.column == policy.Column.ID && p.days == policy.Days {
			row.Processed, row.Undeletable, row.MinUndeletable = p.At, p.Undeletable, p.Oldest
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
		d.registry.account.Task(taskRowDeletion).Do(ctx, d.passPolicies)
		interval = d.registry.cfg.Clock().Sub(began) * shareOfPasses
		interval = min(max(interval, shortestInterval), longestInterval)
		<-turn
	}
}

// passPolicies makes a pass over every table with a policy, children before parents: a parent's row then has fewer children to delete
// with it.
func (d *Database) passPolicies(ctx context.Context) {
	var first error
	now := d.registry.cfg.Clock()
	c := d.Catalog()
	for t := range c.TablesBackward() {
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
		t := c.TableByID(id)
		return t == nil || t.RowDeletionPolicy == nil
	})
}

// passTable makes a pass over one table, or goes on with the one that was interrupted.
func (d *Database) passTable(ctx context.Context, c *schema.Catalog, t *schema.Table) error {
	policy := t.RowDeletionPolicy
	e := &expiry{
		Database: d, catalog: c, table: t,
		before: policy.Limit(d.registry.cfg.Clock()),
		pass:   pass{At: d.registry.cfg.Clock(), column: policy.Column.ID, days: policy.Days},
	}
	err := e.run(ctx)
	if e.pass.Deleted > 0 {
		d.log().Info("deleted expired rows", slog.String("table", t.FullName()), slog.Int("rows", e.pass.Deleted))
	}
	if errors.Is(err, errPolicyGone) {
		err = usererror.SchemaChanged(0)
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
	found   []table.Expired // in the chunk that is being deleted
	busy    []table.Expired // rows that were locked
}

// errPolicyGone says that the schema has changed under a pass.
var errPolicyGone = errors.New("row deletion has lost its policy")

func (e *expiry) run(ctx context.Context) error {
	j := e.passJob()
	if err := e.jobs.Run(ctx, j); err != nil {
		return err
	}
	if err := e.jobs.Forget(ctx, j.Name); err != nil {
		return err
	}
	return e.retryBusy(ctx)
}

// passJob goes over the table, or over an index of it.
func (e *expiry) passJob() job.Job {
	j := e.job(e.find)
	j.Name = fmt.Sprintf("%s%d/column %d/%d days", deletionJobs, table.ExpiryLayout(e.table).ID(), e.pass.column, e.pass.days)
	return j
}

// job deletes the expired rows that find finds.
func (e *expiry) job(find func(context.Context, table.View, []byte, table.Limits) (table.Chunk, error)) job.Job {
	return job.Job{Find: find, Do: e.delete, Skip: e.skip, State: &e.pass, Background: true, System: true, Tag: deletionTag}
}

// find looks for expired rows in a snapshot.
func (e *expiry) find(ctx context.Context, view table.View, after []byte, limits table.Limits) (c table.Chunk, err error) {
	limits.Rows = min(limits.Rows, expiredRows)
	e.found, c, err = table.FindExpired(ctx, view, e.table, e.before, after, limits)
	return c, err
}

// delete deletes those of the found rows that have still expired.
func (e *expiry) delete(ctx context.Context, w table.Writer, _ table.Chunk) error {
	if e.Catalog() != e.catalog { // a later change aborts the transaction
		return errPolicyGone
	}
	limit := int64(expiredBytes)
	if len(e.found) == 1 {
		limit = table.MaxCommitBytes
	}
	tables, err := e.Tables(e.catalog)
	if err != nil {
		return err
	}
	deleted, err := table.DeleteExpired(ctx, w, tables, e.table, e.before, e.found, limit)
	e.pass.Deleted += deleted
	return err
}

// skip leaves a row to a later try if it is locked, and otherwise counts it as undeletable.
func (e *expiry) skip(_ table.Chunk, why error) error {
	row := e.found[0]
	if usererror.IsAborted(why) {
		if e.busy = append(e.busy, row); len(e.busy) > maxBusy {
			return why
		}
		return nil
	}
	if e.pass.Undeletable == 0 || row.At.Before(e.pass.Oldest) {
		e.pass.Oldest = row.At
	}
	e.pass.Undeletable++
	return nil
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
		slices.SortFunc(rows, compareExpired)
		err := e.jobs.Run(ctx, e.job(func(_ context.Context, _ table.View, after []byte, limits table.Limits) (table.Chunk, error) {
			return e.findIn(rows, after, limits), nil
		}))
		if err != nil {
			return err
		}
	}
	if len(e.busy) > 0 {
		return usererror.Wounded(0)
	}
	return nil
}

func compareExpired(a, b table.Expired) int { return bytes.Compare(a.Key, b.Key) }

// findIn is the next chunk of a list of rows, which is sorted.
func (e *expiry) findIn(rows []table.Expired, after []byte, limits table.Limits) table.Chunk {
	at, found := slices.BinarySearchFunc(rows, table.Expired{Key: after}, compareExpired)
	if found {
		at++
	}
	end := min(at+int(min(limits.Rows, expiredRows)), len(rows))
	e.found = rows[at:end]
	c := table.Chunk{After: after, Last: after, Rows: int64(end - at), More: end < len(rows)}
	if end > at {
		c.Last = rows[end-1].Key
	}
	return c
}
