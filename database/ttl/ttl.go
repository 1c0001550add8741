package ttl

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
	"github.com/crowfoot-db/crowfoot/stats/cpu"
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

// Config configures a Deletion.
type Config struct {
	Jobs  job.Runner // runs the passes
	Clock func() time.Time
	Log   *slog.Logger
	Task  *cpu.Task        // measures the CPU time
	Token background.Token // held during a pass: only one database of the store makes one at a time
	// Tables returns the descriptors with which rows of a catalog's tables are deleted.
	Tables func(*schema.Catalog) (*table.Descriptors, error)
}

// Deletion applies the row deletion policies of a database.
type Deletion struct {
	cfg    Config
	Work   background.Task
	mu     sync.Mutex
	passes map[schema.TableID]pass // the last ones; guarded by mu
}

// New returns a Deletion that has not made a pass yet.
func New(cfg Config) *Deletion { return &Deletion{cfg: cfg} }

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

// Policies returns the rows of SPANNER_SYS.ROW_DELETION_POLICIES.
func (d *Deletion) Policies() []stats.DeletionPolicy {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []stats.DeletionPolicy
	for t := range d.cfg.Jobs.Catalog().Tables() {
		policy := t.RowDeletionPolicy
		if policy == nil {
			continue
		}
		row := stats.DeletionPolicy{Table: t.FullName()}
		if p := d.passes[t.ID]; p.column == policy.Column.ID && p.days == policy.Days {
			row.Processed, row.Undeletable, row.MinUndeletable = p.At, p.Undeletable, p.Oldest
		}
		list = append(list, row)
	}
	return list
}

// Run makes passes until ctx ends. Only one database of the store makes a pass at a time.
func (d *Deletion) Run(ctx context.Context) {
	interval := firstInterval
	for background.Sleep(ctx, interval) {
		if d.cfg.Token.Acquire(ctx) != nil {
			return
		}
		began := d.cfg.Clock()
		d.cfg.Task.Do(ctx, d.Pass)
		interval = d.cfg.Clock().Sub(began) * shareOfPasses
		interval = min(max(interval, shortestInterval), longestInterval)
		d.cfg.Token.Release()
	}
}

// Pass makes a pass over every table with a policy, children before parents, so that a parent's row has fewer
// children to delete with it.
func (d *Deletion) Pass(ctx context.Context) {
	var first error
	now := d.cfg.Clock()
	c := d.cfg.Jobs.Catalog()
	for t := range c.TablesBackward() {
		if t.RowDeletionPolicy == nil || ctx.Err() != nil {
			continue
		}
		err := d.PassTable(ctx, c, t)
		first = cmp.Or(first, err)
		if usererror.CodeOf(err) == codes.Internal && ctx.Err() == nil {
			d.cfg.Log.Error("delete expired rows", slog.String("table", t.FullName()), slog.Any("error", err))
		}
	}
	d.Work.Ran(now, cmp.Or(ctx.Err(), first))
	d.forget(c)
}

// forget removes the passes over tables that no longer have a policy.
func (d *Deletion) forget(c *schema.Catalog) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.passes, func(id schema.TableID, _ pass) bool {
		t := c.TableByID(id)
		return t == nil || t.RowDeletionPolicy == nil
	})
}

// PassTable makes a pass over one table, or resumes the pass that was interrupted.
func (d *Deletion) PassTable(ctx context.Context, c *schema.Catalog, t *schema.Table) error {
	policy := t.RowDeletionPolicy
	e := &expiry{
		Deletion: d, catalog: c, table: t,
		before: policy.Limit(d.cfg.Clock()),
		pass:   pass{At: d.cfg.Clock(), column: policy.Column.ID, days: policy.Days},
	}
	err := e.run(ctx)
	if e.pass.Deleted > 0 {
		d.cfg.Log.Info("deleted expired rows", slog.String("table", t.FullName()), slog.Int("rows", e.pass.Deleted))
	}
	if errors.Is(err, errPolicyGone) {
		err = usererror.SchemaChanged(0)
	}
	if err == nil {
		d.passed(t, e.pass)
	}
	return err
}

func (d *Deletion) passed(t *schema.Table, p pass) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.passes == nil {
		d.passes = map[schema.TableID]pass{}
	}
	d.passes[t.ID] = p
}

// expiry is one pass over one table.
type expiry struct {
	*Deletion
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
	if err := e.cfg.Jobs.Run(ctx, j); err != nil {
		return err
	}
	if err := e.cfg.Jobs.Forget(ctx, j.Name); err != nil {
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
	if e.cfg.Jobs.Catalog() != e.catalog { // a change after this check aborts the transaction
		return errPolicyGone
	}
	limit := int64(expiredBytes)
	if len(e.found) == 1 {
		limit = table.MaxCommitBytes
	}
	tables, err := e.cfg.Tables(e.catalog)
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
		err := e.cfg.Jobs.Run(ctx, e.job(func(_ context.Context, _ table.View, after []byte, limits table.Limits) (table.Chunk, error) {
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
