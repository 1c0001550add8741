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

// Row deletion policies are applied in passes over the tables that have one. The pass over one table is a job. The job
// looks for expired rows in a snapshot and deletes them in small transactions. The small transactions give way to all
// other transactions, and check again whether the rows have expired.
//
// The pause after a pass is shareOfPasses times as long as the pass. So the passes cost about a thousandth of a core,
// even if they must read tables from end to end. The pause is at least shortestInterval, so that passes stay rare. A
// developer with small tables still sees expired rows disappear soon. The pause is at most longestInterval, the
// interval of Cloud Spanner, where "a background process checks daily": https://cloud.google.com/spanner/docs/ttl. The
// first pass begins firstInterval after the start, so that a new server serves its first clients first. firstInterval
// is shorter than shortestInterval, because many servers, such as those of tests, run for less than a minute.
const (
	shareOfPasses    = 1000
	firstInterval    = 10 * time.Second
	shortestInterval = time.Minute
	longestInterval  = 24 * time.Hour
)

// One transaction deletes at most expiredRows expired rows and writes at most expiredBytes bytes, so that its commit
// does not delay other commits. Only a transaction that deletes a single row, with its index entries and children, may
// be as large as any transaction.
const (
	expiredRows  = 100
	expiredBytes = 1 << 20
)

// A row that a user's transaction has locked is tried again after each of these pauses. If it is still locked then, it
// stays until the next pass. If more than maxBusy rows are locked, the pass ends.
var busyPauses = [...]time.Duration{10 * time.Millisecond, 40 * time.Millisecond, 160 * time.Millisecond}

const maxBusy = 1000

const (
	// deletionTag is the tag of the transactions that delete expired rows. Cloud Spanner uses the same tag.
	deletionTag = "RowDeletionPolicy"
	// deletionJobs is the prefix of the names of a Deletion's jobs.
	deletionJobs = "delete/"
)

// Config configures a Deletion.
type Config struct {
	Jobs  job.Runner // runs the passes
	Clock func() time.Time
	Log   *slog.Logger
	Task  *cpu.Task        // measures the CPU time of the passes
	Token background.Token // held during a pass, so that only one database of the store makes a pass at a time
	// Tables returns the table.Descriptors of a catalog, which the passes need to delete rows of its tables.
	Tables func(*schema.Catalog) (*table.Descriptors, error)
}

// Deletion applies the row deletion policies of a database.
type Deletion struct {
	cfg    Config
	Status background.Task
	mu     sync.Mutex
	passes map[schema.TableID]pass // the last pass over each table; guarded by mu
}

// New returns a Deletion that has not made a pass yet.
func New(cfg Config) *Deletion { return &Deletion{cfg: cfg} }

// pass holds the results of one pass over one table so far. It is stored in the checkpoints of the pass's job.
type pass struct {
	At      time.Time // when the pass began; the pass looks at every row that existed then
	Deleted int       // number of deleted rows
	// Undeletable is the number of expired rows that could not be deleted. Oldest is the oldest timestamp that the
	// policy's column has in these rows.
	Undeletable int64
	Oldest      time.Time

	column schema.ColumnID // the TIMESTAMP column that the policy names
	days   int64           // a row expires this many days after the time in the policy's column
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

// Run makes passes until ctx ends. It holds Config.Token during a pass.
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

// Pass makes a pass over every table with a policy. Children come before their parents, so that fewer children are left
// to be deleted together with a parent's row.
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
	d.Status.Ran(now, cmp.Or(ctx.Err(), first))
	d.forget(c)
}

// forget removes the results of passes over tables that no longer have a policy.
func (d *Deletion) forget(c *schema.Catalog) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.passes, func(id schema.TableID, _ pass) bool {
		t := c.TableByID(id)
		return t == nil || t.RowDeletionPolicy == nil
	})
}

// PassTable makes a pass over one table. If a pass over the table was interrupted, it continues that pass.
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

// expiry is the state of one pass that deletes the expired rows of one table.
type expiry struct {
	*Deletion
	catalog *schema.Catalog // newest catalog when the pass began; the pass ends when there is a newer one
	table   *schema.Table
	before  time.Time
	pass    pass
	found   []table.Expired // the expired rows of the current chunk
	busy    []table.Expired // expired rows that were locked, to be tried again
}

// errPolicyGone says that the schema has changed during a pass, so that the pass must end.
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

// passJob returns the job of the pass, which reads the table or one of its indexes.
func (e *expiry) passJob() job.Job {
	j := e.job(e.find)
	j.Name = fmt.Sprintf("%s%d/column %d/%d days", deletionJobs, table.ExpiryLayout(e.table).ID(), e.pass.column, e.pass.days)
	return j
}

// job returns a job that deletes the rows which the function find returns, if they are still expired.
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
	if e.cfg.Jobs.Catalog() != e.catalog { // a schema change after this check aborts the transaction
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

// skip is called with a chunk of one row that could not be deleted. If the row was locked, it adds the row to busy.
// Otherwise it counts the row as undeletable.
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

// findIn sets e.found to the first of the given rows whose keys are greater than the key in the parameter after, up to
// the limits, and returns these rows as a chunk. rows are sorted by key.
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
