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
	// Name is unique in the database, because the checkpoint is stored under it. A job without a name stores no
	// checkpoint. A job without Do stores its checkpoint every checkpointEvery, and at its end.
	Name string
	// Find returns the next chunk, up to the limits: the first rows whose keys are greater than the key in the
	// parameter after, or the first rows of all if this key is nil. Find reads the rows from a new snapshot, view. If
	// the chunk has no rows, Do is not called.
	Find func(ctx context.Context, view table.View, after []byte, limits table.Limits) (table.Chunk, error)
	// Do does the work of a chunk in a transaction. If the transaction is retried, Do is called again. Do is nil if
	// Find does all the work of the job.
	Do func(ctx context.Context, w table.Writer, c table.Chunk) error
	// Skip is called if a chunk of one row fails with err. If Skip returns nil, the job continues after this row.
	// Otherwise the job ends with the error that Skip returns. If Skip is nil, the job ends with err.
	Skip func(c table.Chunk, err error) error
	// State, if not nil, points to the counts that Do and Skip keep. The State is stored as JSON in the checkpoint, and
	// read from the checkpoint when the job is resumed. If a transaction fails, the job sets State back to what it was
	// before the transaction.
	State any

	// Background says that the job gives way to all other transactions (txn.Options.Background), and rests after each
	// chunk for as long as the chunk took. If a chunk of a background job is aborted, the job tries half of the chunk.
	// Without Background, the job retries the same chunk until it is not aborted.
	Background bool
	Tag        string // tag of the job's transactions
	// System says that the server itself, and no user, does the work. Excluded says that the job's changes are not
	// recorded by those change streams that allow this. See txn.Options.
	System, Excluded bool
	// AnySize says that a transaction for a single row may exceed the size limit for commits of users.
	AnySize bool
	// Progress, if not nil, is called after each chunk with the chunk's last key.
	Progress func(last []byte)
}

// Runner runs the jobs of a database.
type Runner struct {
	Transactions *txn.Manager
	Clock        func() time.Time
	Catalog      func() *schema.Catalog // returns the newest catalog
}

// Run runs a job to its end. If the job has a checkpoint, Run continues after it. The checkpoint stays in the store
// until Forget.
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

// Transact runs work in a read-write transaction and commits it. It retries an aborted transaction until it commits. A
// schema change during the transaction also aborts it; the retry uses the new catalog.
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
	after  []byte // last key of the last chunk that is done; nil before the first chunk
	done   bool
	limits table.Limits // limits of the next chunk
	noted  time.Time    // when a job without Do last stored its checkpoint; at first, when the job began
}

// next finds the next chunk and does its work. If the work fails because the chunk is too large, it halves the row
// limit instead, so that the next call tries a smaller chunk.
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

// refused decides what to do about a chunk after a failed transaction; why is the error. It halves the row limit and
// returns again = true, or it skips the row of the chunk and returns nil, or it returns the error that ends the job.
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

// commit runs Do for a chunk in a transaction, which also stores the checkpoint after the chunk.
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
