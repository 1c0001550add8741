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
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/background"
	"github.com/crowfoot-db/crowfoot/database/job"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Row deletion policies are applied in passes over the tables that have one. A pass is a job. It looks for expired rows
// in a snapshot and deletes them in small transactions, which give way to all others and check again whether the rows
// have expired.
//
// The next pass comes shareOfPasses times as long after a pass as the pass took. So a table that must be read from end
// to end costs a thousandth of a core. The interval is bounded: it is short enough for a developer to see rows
// disappear, and no longer than in the service, where "a background process checks daily":
// https://cloud.google.com/spanner/docs/ttl. The first pass waits until the clients of a new server have been served:
// many servers do not live for a minute.
const (
	shareOfPasses    = 1000
	firstInterval    = 10 * time.Second
	shortestInterval = time.Minute
	longestInterval  = 24 * time.Hour
)

// expiredRows and expiredBytes bound the rows that one transaction deletes and the bytes that it writes, so that its
// commit does not hold up others. A single row with its index entries and children may be as large as any transaction.
const (
	expiredRows  = 100
	expiredBytes = 1 << 20
)

// A pass tries rows that users' transactions have locked again after these pauses, and then leaves them to the next
// pass. If more than maxBusy rows are locked, the pass ends.
var busyPauses = [...]time.Duration{10 * time.Millisecond, 40 * time.Millisecond, 160 * time.Millisecond}

const maxBusy = 1000

const (
	// deletionTag is the transaction tag of the service's deletions.
	deletionTag = "RowDeletionPolicy"
	// deletionJobs is the prefix of the names of the jobs that are passes.
	deletionJobs = "delete/"
)

// rowDeletion holds the results of the last passes of a database's row deletion policies.
type rowDeletion struct {
	background.Task
	mu     sync.Mutex
	passes map[schema.TableID]pass // guarded by mu
}

// pass holds the results of a pass over a table so far. It is stored with the checkpoints of its job.
type pass struct {
	At      time.Time // when the pass began: it looks at every row of that time
	Deleted int       // rows
	// Undeletable is the number of rows that could not be deleted; Oldest is the oldest of their timestamps.
	Undeletable int64
	Oldest      time.Time

	column schema.ColumnID // of the policy
	days   int64           // of the policy
}

// deletionPolicies returns the rows of SPANNER_SYS.ROW_DELETION_POLICIES.
func (d *Database) deletionPolicies() []stats.DeletionPolicy {
	work := &d.rowDeletion
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

// deleteExpired makes passes until ctx ends. Only one database of the store makes a pass at a time.
func (d *Database) deleteExpired(ctx context.Context) {
	interval := firstInterval
	for background.Sleep(ctx, interval) {
		if d.registry.deleting.Acquire(ctx) != nil {
			return
		}
		began := d.registry.cfg.Clock()
		d.registry.account.Task(taskRowDeletion).Do(ctx, d.passPolicies)
		interval = d.registry.cfg.Clock().Sub(began) * shareOfPasses
		interval = min(max(interval, shortestInterval), longestInterval)
		d.registry.deleting.Release()
	}
}

// passPolicies makes a pass over every table with a policy, children before parents, so that a parent's row has fewer
// children to delete with it.
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
	work := &d.rowDeletion
	work.Ran(now, cmp.Or(ctx.Err(), first))
	work.forget(c)
}

// forget removes the passes over tables that no longer have a policy.
func (w *rowDeletion) forget(c *schema.Catalog) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.passes, func(id schema.TableID, _ pass) bool {
		t := c.TableByID(id)
		return t == nil || t.RowDeletionPolicy == nil
	})
}

// passTable makes a pass over one table, or resumes the pass that was interrupted.
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
		d.rowDeletion.passed(t, e.pass)
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
	catalog *schema.Catalog // the pass ends when it changes
	table   *schema.Table
	before  time.Time
	pass    pass
	found   []table.Expired // the rows of the current chunk
	busy    []table.Expired // expired rows that were locked
}

// errPolicyGone says that the schema has changed during a pass.
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

// passJob returns the job of the pass, which reads the table or an index of it.
func (e *expiry) passJob() job.Job {
	j := e.job(e.find)
	j.Name = fmt.Sprintf("%s%d/column %d/%d days", deletionJobs, table.ExpiryLayout(e.table).ID(), e.pass.column, e.pass.days)
	return j
}

// job returns a job that deletes the expired rows that find returns.
func (e *expiry) job(find func(context.Context, table.View, []byte, table.Limits) (table.Chunk, error)) job.Job {
	return job.Job{Find: find, Do: e.delete, Skip: e.skip, State: &e.pass, Background: true, System: true, Tag: deletionTag}
}

// find looks for expired rows in a snapshot.
func (e *expiry) find(ctx context.Context, view table.View, after []byte, limits table.Limits) (c table.Chunk, err error) {
	limits.Rows = min(limits.Rows, expiredRows)
	e.found, c, err = table.FindExpired(ctx, view, e.table, e.before, after, limits)
	return c, err
}

// delete deletes the found rows that are still expired.
func (e *expiry) delete(ctx context.Context, w table.Writer, _ table.Chunk) error {
	if e.Catalog() != e.catalog { // a change after this check aborts the transaction
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

// skip keeps a locked row for a later try, and counts any other row as undeletable.
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

// retryBusy tries again to delete the rows that were locked.
func (e *expiry) retryBusy(ctx context.Context) error {
	for _, pause := range busyPauses {
		if len(e.busy) == 0 {
			return nil
		}
		if !background.Sleep(ctx, pause) {
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

// findIn returns the next chunk of rows, which are sorted by key.
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
