package database

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"

	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// background is the work that a database does besides requests, until the registry closes or the database is dropped.
type background struct {
	ctx     context.Context
	stop    context.CancelFunc // nil before begin
	running sync.WaitGroup
	open    sync.RWMutex // see whileOpen

	collection  task
	rowDeletion rowDeletion
}

// begin starts the work in the background.
func (d *Database) begin(ctx context.Context) {
	d.background.ctx, d.background.stop = context.WithCancel(ctx)
	for _, work := range []func(context.Context){d.statistics.Run, d.deleteExpired, d.keepCopies} {
		d.background.running.Go(func() { work(d.background.ctx) })
	}
}

// end stops the work in the background, and returns when it has ended.
func (b *background) end() {
	if b.stop != nil {
		b.stop()
		b.running.Wait()
		b.open.Lock()
		defer b.open.Unlock()
	}
}

// whileOpen runs work that a request has begun, such as a schema change. The context of the work also ends when the
// registry closes or the database is dropped; both then wait for the work to return.
func (d *Database) whileOpen(ctx context.Context, work func(context.Context) error) error {
	d.background.open.RLock()
	defer d.background.open.RUnlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.background.ctx, cancel)()
	err := d.background.ctx.Err()
	if err == nil {
		err = work(ctx)
	}
	if err != nil && d.Dropped() {
		return usererror.DatabaseNotFound(d.name)
	}
	return err
}

// task is one kind of work in the background, as SPANNER_SYS.TASKS shows it. A restart forgets it.
type task struct {
	mu        sync.Mutex
	processed time.Time // all work that was due at this time has been done
	status    string    // of the last run: the name of a canonical code
}

// ran records the end of a run. If err is nil, the run has done all work that was due at time at.
func (t *task) ran(at time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.processed = at
	}
	t.status = statusName(err)
}

func statusName(err error) string {
	if errors.Is(err, context.Canceled) {
		return code.Code_CANCELLED.String()
	}
	return code.Code(usererror.CodeOf(err)).String()
}

func (t *task) row(name string, undeletable int64) stats.Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return stats.Task{Name: name, Processed: t.processed, Status: t.status, Undeletable: undeletable}
}

// tasks returns the rows of SPANNER_SYS.TASKS.
func (d *Database) tasks() []stats.Task {
	var undeletable int64
	for _, p := range d.deletionPolicies() {
		undeletable += p.Undeletable
	}
	return []stats.Task{
		d.background.rowDeletion.row("row_deletion_policy", undeletable),
		d.background.collection.row("version_collection", 0),
		d.copying.row("columnar_policy", 0),
	}
}

// sleep waits for d and returns true, or returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
