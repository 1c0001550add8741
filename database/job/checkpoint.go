package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// checkpoint records how far a job has come. It is stored as a value in the key space of the database, so that one
// transaction can commit both the rows of a chunk and the checkpoint. Its key is:
//
//	01 <name of the job> 00
//
// Keys of tables and indexes begin with an ID, from 0x02 on (table.Layout), so all checkpoints sort before them.
type checkpoint struct {
	After []byte          // last key of the last chunk that is done
	Done  bool            // whether no rows follow the key After
	State json.RawMessage `json:",omitempty"`
	At    time.Time
}

const checkpointPrefix = 0x01

func checkpointKey(name string) []byte {
	return append(append([]byte{checkpointPrefix}, name...), 0)
}

// checkpointSpan returns the span of the checkpoints of all jobs whose names begin with prefix.
func checkpointSpan(prefix string) table.Span {
	start := append([]byte{checkpointPrefix}, prefix...)
	return table.Span{Start: append(bytes.Clone(start), 0), End: append(start, 0xff, 0)}
}

// resume loads the checkpoint of the job, if there is one, so that the job continues after the last key that is done.
func (r *run) resume(ctx context.Context) error {
	if r.Name == "" {
		return nil
	}
	c, err := r.runner.load(ctx, r.Name)
	if err != nil {
		return err
	}
	r.after, r.done = c.After, c.Done
	return r.setState(c.State)
}

// load returns the checkpoint of a job; it is zero if there is none.
func (r Runner) load(ctx context.Context, name string) (c checkpoint, err error) {
	snapshot, err := r.Transactions.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		return c, err
	}
	defer snapshot.Close()
	data, ok, err := snapshot.Get(ctx, checkpointKey(name), table.LockShared)
	if !ok || err != nil {
		return c, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("read checkpoint of job %s: %w", name, err)
	}
	return c, nil
}

// putCheckpoint adds the job's checkpoint after a chunk to the transaction that does the work of the chunk, so that the
// work and the checkpoint are committed together.
func (r *run) putCheckpoint(ctx context.Context, w table.Writer, chunk table.Chunk) error {
	if r.Name == "" {
		return nil
	}
	c := checkpoint{After: chunk.Last, Done: !chunk.More, At: r.runner.Clock()}
	var err error
	if r.State != nil {
		if c.State, err = json.Marshal(r.State); err != nil {
			return fmt.Errorf("encode state of job: %w", err)
		}
	}
	key, data, err := c.encode(r.Name)
	if err != nil {
		return err
	}
	return w.Put(ctx, key, data, nil, nil)
}

func (c *checkpoint) encode(name string) (key, val []byte, err error) {
	if val, err = json.Marshal(c); err != nil {
		return nil, nil, fmt.Errorf("encode checkpoint: %w", err)
	}
	return checkpointKey(name), val, nil
}

// Checkpoint returns the key and value of a checkpoint. It is for work that runs without transactions: the caller
// writes the checkpoint in the same batch as its results. The next process calls Runner.Position to learn the key after
// which it continues.
func Checkpoint(name string, after []byte, done bool, now time.Time) (key, val []byte, err error) {
	return (&checkpoint{After: after, Done: done, At: now}).encode(name)
}

// checkpointEvery is how often a job whose Job.Do is nil stores its checkpoint. Commits at this rate hardly slow the
// job down.
const checkpointEvery = time.Second

// noteFound stores the checkpoint of a job whose Job.Do is nil. The job calls noteFound after each chunk, but noteFound
// stores a checkpoint only every checkpointEvery, and after the last chunk.
func (r *run) noteFound(ctx context.Context, chunk table.Chunk) error {
	now := r.runner.Clock()
	if r.Name == "" || chunk.More && now.Sub(r.noted) < checkpointEvery {
		return nil
	}
	r.noted = now
	err := r.runner.Transact(ctx, func(w table.Writer) error { return r.putCheckpoint(ctx, w, chunk) })
	if errors.Is(err, kv.ErrRefused) {
		return nil // the disk is full, but the job itself writes nothing
	}
	return err
}

// Position returns the last key that the job with the given name has done, or nil if the job has done none. done says
// that no rows follow this key.
func (r Runner) Position(ctx context.Context, name string) (after []byte, done bool, err error) {
	c, err := r.load(ctx, name)
	return c.After, c.Done, err
}

// setState decodes data into the job's State.
func (r *run) setState(data json.RawMessage) error {
	if r.State == nil || data == nil {
		return nil
	}
	if err := json.Unmarshal(data, r.State); err != nil {
		return fmt.Errorf("decode state of job: %w", err)
	}
	return nil
}

// Forget deletes the checkpoints of all jobs whose names begin with prefix, so that none of these jobs can be resumed.
func (r Runner) Forget(ctx context.Context, prefix string) error {
	return r.forget(ctx, prefix, func(checkpoint) bool { return true })
}

// ForgetOlder is like Forget, but deletes only checkpoints that were stored before the given time.
func (r Runner) ForgetOlder(ctx context.Context, prefix string, since time.Time) error {
	return r.forget(ctx, prefix, func(c checkpoint) bool { return c.At.Before(since) })
}

func (r Runner) forget(ctx context.Context, prefix string, old func(checkpoint) bool) error {
	keys, err := r.checkpoints(ctx, prefix, old)
	if err != nil || len(keys) == 0 {
		return err
	}
	return r.Transact(ctx, func(w table.Writer) error {
		for _, k := range keys {
			if err := w.Delete(ctx, k); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkpoints passes the checkpoints of all jobs whose names begin with prefix to the function in the parameter which,
// and returns the keys of those for which the function returns true. If a checkpoint cannot be decoded, the function
// gets one with a zero At instead, so that the checkpoint counts as very old.
func (r Runner) checkpoints(ctx context.Context, prefix string, which func(checkpoint) bool) (keys [][]byte, err error) {
	snapshot, err := r.Transactions.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	cur, err := snapshot.Scan(ctx, checkpointSpan(prefix), table.ScanOptions{})
	if err != nil {
		return nil, err
	}
	for cur.Next() {
		var c checkpoint
		_ = json.Unmarshal(cur.Value(), &c)
		if which(c) {
			keys = append(keys, bytes.Clone(cur.Key()))
		}
	}
	return keys, errors.Join(cur.Err(), cur.Close())
}
