package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Job is the description of a job.
type Job struct {
	// Name is unique in the database: the checkpoint is stored under it. A job without a name stores no checkpoint. A
	// job without Do, which writes nothing else, stores one every checkpointEvery, and at its end.
	Name string
	// Find returns the next chunk after a key (nil: the first chunk) in a new snapshot. A chunk without rows has no
	// work.
	Find func(ctx context.Context, view table.View, after []byte, limits table.Limits) (table.Chunk, error)
	// Do does the work of a chunk in a transaction; it is called again if the transaction is. It is nil if Find does
	// all the work.
	Do func(ctx context.Context, w table.Writer, c table.Chunk) error
	// Skip is called if a chunk of one row fails with err. The job goes on after the row if Skip returns nil, and ends
	// with its error otherwise. If Skip is nil, the job ends.
	Skip func(c table.Chunk, err error) error
	// State, if not nil, points to the counts of Do and Skip. It is stored with the checkpoint, as JSON, and read from
	// it when the job is resumed. If a transaction fails, the job restores the State from before it.
	State any

	// Background says that the job gives way to all other transactions (txn.Options.Background), and rests after each
	// chunk for as long as the chunk took. If a chunk is aborted, the job tries half of it. Other jobs run the same
	// chunk again until it is not aborted.
	Background bool
	Tag        string // tag of its transactions
	// System says that the work is the server's own. Excluded says that change streams need not record it. See
	// txn.Options.
	System, Excluded bool
	// AnySize says that a chunk of one row may exceed the limit of a user's commit.
	AnySize bool
	// Progress, if not nil, is called after each chunk with the last key that is done.
	Progress func(last []byte)
}

// Runner runs the jobs of a database.
type Runner struct {
	Transactions *txn.Manager
	Clock        func() time.Time
	Catalog      func() *schema.Catalog // returns the newest catalog
}

// Run runs a job to its end. It begins after the job's checkpoint, if there is one. The checkpoint stays until Forget.
func (r Runner) Run(ctx context.Context, j Job) error {
	run := &run{Job: j, runner: r, limits: table.FullChunk, noted: r.Clock()}
	if err := run.resume(ctx); err != nil {
		return err
	}
	for !run.done {
		began := r.Clock()
		if err := run.next(ctx); err != nil {
			return err
		}
		if run.Background && !run.done {
			if err := rest(ctx, r.Clock().Sub(began)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Transact runs work in a read-write transaction, again and again until it is not aborted. A schema change aborts the
// transaction.
func (r Runner) Transact(ctx context.Context, work func(table.Writer) error) error {
	_, err := r.transact(ctx, txn.Options{}, work)
	return err
}

// transact is Transact with options. It does not retry an aborted background transaction. It returns the number of
// bytes written.
func (r Runner) transact(ctx context.Context, opts txn.Options, work func(table.Writer) error) (written int64, err error) {
	for {
		tx, c := r.Transactions.Begin(opts), r.Catalog()
		err := tx.DependOn(ctx, schema.DependOnAll(c), c)
		if err == nil {
			_, err = tx.Commit(ctx, work, txn.CommitOptions{})
		}
		if err == nil {
			return int64(tx.Stats().Bytes), nil
		}
		if rollback := tx.Rollback(); rollback != nil {
			return 0, errors.Join(err, fmt.Errorf("roll back: %w", rollback))
		}
		if opts.Background || usererror.CodeOf(err) != codes.Aborted {
			return 0, err
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		opts.Previous = tx.Age()
	}
}

// run is the state of a running job.
type run struct {
	Job
	runner Runner
	after  []byte // the last key that is done; nil before the first chunk
	done   bool
	limits table.Limits // limits of the next chunk
	noted  time.Time    // when a job without Do last stored its checkpoint, or began
}

// next finds a chunk and does it, or halves the limit for the next try.
func (r *run) next(ctx context.Context) error {
	snapshot, err := r.runner.Transactions.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		return err
	}
	chunk, err := r.Find(ctx, snapshot, r.after, r.limits)
	snapshot.Close()
	if err != nil {
		return err
	}
	if chunk.Rows > 0 && r.Do != nil {
		if err := r.commit(ctx, chunk); err != nil {
			again, err := r.refused(ctx, chunk, err)
			if again || err != nil {
				return err
			}
		}
	}
	if r.Do == nil {
		if err := r.noteFound(ctx, chunk); err != nil {
			return err
		}
	}
	r.after, r.done = chunk.Last, !chunk.More
	if r.Progress != nil {
		r.Progress(r.after)
	}
	return ctx.Err()
}

// refused handles a chunk that failed: the chunk is tried again in halves, it is skipped, or the job ends.
func (r *run) refused(ctx context.Context, c table.Chunk, why error) (again bool, err error) {
	_, user := usererror.As(why)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(why, kv.ErrRefused) || usererror.CodeOf(why) == codes.Internal: // smaller chunks would fail as well
		return false, why
	case !usererror.IsTooLarge(why) && !(r.Background && user):
		return false, why
	case c.Rows > 1:
		r.limits.Rows = c.Rows / 2
		return true, nil
	case r.Skip != nil:
		return false, r.Skip(c, why)
	}
	return false, why
}

// commit does a chunk in a transaction, together with the checkpoint after it.
func (r *run) commit(ctx context.Context, c table.Chunk) error {
	before, err := json.Marshal(r.State)
	if err != nil {
		return fmt.Errorf("encode state of job: %w", err)
	}
	opts := txn.Options{Background: r.Background, Tag: r.Tag, System: r.System, Excluded: r.Excluded, AnySize: r.AnySize && c.Rows == 1}
	written, err := r.runner.transact(ctx, opts, func(w table.Writer) error {
		if err := r.setState(before); err != nil {
			return err
		}
		if err := r.Do(ctx, w, c); err != nil {
			return err
		}
		return r.putCheckpoint(ctx, w, c)
	})
	if err != nil {
		return errors.Join(err, r.setState(before))
	}
	// The next chunk may have twice as many rows if it would then stay within table.ChunkWriteBytes.
	if 2*written <= table.ChunkWriteBytes {
		r.limits.Rows = min(2*r.limits.Rows, table.ChunkRows)
	}
	return nil
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
