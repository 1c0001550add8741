package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// checkpoint is how far a job has come. It is a value in the database's own key space, so that one transaction commits it with the
// rows of its chunk:
//
//	01 <name of the job> 00
//
// Keys of tables and indexes begin with an ID, from 0x02 on (table.Layout), so checkpoints come before all of them.
type checkpoint struct {
	After []byte          // the last key that is done
	Done  bool            // there was nothing behind it
	State json.RawMessage `json:",omitempty"`
	At    time.Time
}

const checkpointPrefix = 0x01

func checkpointKey(name string) []byte {
	return append(append([]byte{checkpointPrefix}, name...), 0)
}

// checkpointSpan holds the checkpoints of all jobs whose names begin with prefix.
func checkpointSpan(prefix string) table.Span {
	start := append([]byte{checkpointPrefix}, prefix...)
	return table.Span{Start: append(bytes.Clone(start), 0), End: append(start, 0xff, 0)}
}

// resume goes on behind the checkpoint of the job, if it has one.
func (r *run) resume(ctx context.Context) error {
	if r.Name == "" {
		return nil
	}
	snapshot, err := r.runner.Transactions.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		return err
	}
	defer snapshot.Close()
	data, ok, err := snapshot.Get(ctx, checkpointKey(r.Name), table.LockShared)
	if !ok || err != nil {
		return err
	}
	var c checkpoint
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("read checkpoint of job %s: %w", r.Name, err)
	}
	r.after, r.done = c.After, c.Done
	return r.setState(c.State)
}

// putCheckpoint writes the checkpoint behind a chunk into its transaction.
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
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode checkpoint: %w", err)
	}
	return w.Put(ctx, checkpointKey(r.Name), data, nil, nil)
}

// setState gives the job's State the value that data holds.
func (r *run) setState(data json.RawMessage) error {
	if r.State == nil || data == nil {
		return nil
	}
	if err := json.Unmarshal(data, r.State); err != nil {
		return fmt.Errorf("decode state of job: %w", err)
	}
	return nil
}

// Forget deletes the checkpoints of all jobs whose names begin with prefix: none of them will be resumed.
func (r Runner) Forget(ctx context.Context, prefix string) error {
	return r.forget(ctx, prefix, func(checkpoint) bool { return true })
}

// ForgetOlder deletes the checkpoints of jobs whose names begin with prefix that have not gone on since a time.
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

// checkpoints are the keys of the checkpoints of some jobs. One that cannot be read counts as one without a time.
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
