package schemachange

import (
	"context"
	"fmt"

	"github.com/crowfoot-db/crowfoot/database/background"
	"github.com/crowfoot-db/crowfoot/database/job"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// An index is built without a lock. Before the build, a catalog is published in which the index is write-only. From
// then on writers maintain the index: the entries that they put or delete have later timestamps than the publication.
// The build writes the entries of the rows that existed before, with the timestamp of the publication. These versions
// are older than those of all writers. So after every write to a row, the newest version of its entry is correct:
//
//	row that the build read  versions of its entry                       what a read sees later
//	never changed            the build's                                 the build's entry
//	updated later            the build's, then the writer's tombstone    no entry here; the writer has put the new entry
//	deleted later            the build's, then the writer's tombstone    no entry
//	put by a writer          the build's, then the writer's               the writer's entry
//
// Between the publication and the end of the build, the history of the index differs from the history of the table. No
// read ever sees that: a read uses an index only at timestamps at or after the publication of a catalog that has the
// index complete.
//
// The build need not sync its writes: the publication after the build is synced, and comes later in the store's log.
// Each step writes its entries and a checkpoint in one batch. After a crash the build continues after the last
// checkpoint that was not lost, with the same timestamp for its entries. A build may be interrupted for longer than old
// versions of rows are kept, since each step reads the newest rows. But a single step that lasts longer than that
// fails.

const (
	// buildBytes is the largest size of one batch in bytes. It is small because the next commit of a user also syncs
	// the batches that were written before it.
	buildBytes = 64 << 10
	// One step reads at most buildReadBytes bytes and buildRows rows, in one snapshot. A step takes some milliseconds.
	// It begins by waiting for the running commits, so the build gives way to them.
	buildReadBytes = 1 << 20
	buildRows      = 1000
	// buildRest is the duration of a step divided by the duration of the pause after it. The pause leaves processors
	// and the disk to requests.
	buildRest = 2
)

// buildIndex writes the entries of x for the rows that existed when a catalog with x was published at timestamp at.
// name is the name of the build's checkpoint. If the checkpoint exists, the build continues after it. progress is
// called after each step with the key of the last row that is done.
func (m *Manager) buildIndex(ctx context.Context, name string, x *schema.Index, at mvcc.Timestamp, progress func(last []byte)) error {
	b := indexBuild{manager: m, name: name, index: x, at: at}
	var done bool
	var err error
	if b.after, done, err = m.jobs.Position(ctx, name); done || err != nil {
		return err
	}
	for {
		began := m.cfg.Clock()
		more, err := b.step(ctx)
		if err != nil {
			return err
		}
		progress(b.after)
		if !more || !background.Sleep(ctx, m.cfg.Clock().Sub(began)/buildRest) {
			return ctx.Err()
		}
	}
}

type indexBuild struct {
	manager *Manager
	name    string // name of the checkpoint
	index   *schema.Index
	at      mvcc.Timestamp // timestamp of the entries
	after   []byte         // stored key of the last row whose entry was written; nil before the first row
}

// step writes the entries of the next rows. more is false if no rows follow.
func (b *indexBuild) step(ctx context.Context) (more bool, err error) {
	snapshot, err := b.manager.jobs.Transactions.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		return false, err
	}
	defer snapshot.Close()
	batch := b.manager.cfg.Rows.NewBatch()
	defer batch.Close()
	if more, err = b.collect(ctx, snapshot, batch); err != nil {
		return false, err
	}
	key, val, err := job.Checkpoint(b.name, b.after, !more, b.manager.cfg.Clock())
	if err != nil {
		return false, err
	}
	if err := batch.Put(key, val, b.at); err != nil {
		return false, err
	}
	if err := batch.CommitNoSync(); err != nil {
		return false, fmt.Errorf("write entries of index %s: %w", b.index.FullName(), err)
	}
	// This step has written entries for the rows of the snapshot. If a transaction has changed a row since then, it has
	// also written a tombstone for the row's old entry. If the horizon of garbage collection is above the timestamp of the
	// snapshot, this tombstone may be gone, and reads would wrongly find the old entry.
	if b.manager.cfg.Rows.Horizon() > snapshot.Timestamp() {
		return false, fmt.Errorf("entries of index %s were written later than the version retention period allows", b.index.FullName())
	}
	return more, nil
}

// collect adds the entries of the next rows to a batch, up to the limits of a step. more is false if no rows follow.
func (b *indexBuild) collect(ctx context.Context, view table.View, batch *mvcc.Batch) (more bool, err error) {
	entries, err := table.MakeEntries(ctx, view, b.index, b.after)
	if err != nil {
		return false, err
	}
	defer entries.Close()
	for rows, read := 0, 0; ; rows++ {
		if rows == buildRows || read >= buildReadBytes || batch.KV().Len() >= buildBytes {
			return true, nil
		}
		ok, err := entries.Next()
		if !ok || err != nil {
			return false, err
		}
		key, val, ok, err := entries.Entry()
		if err != nil {
			return false, err
		}
		if ok {
			if err := batch.Put(key, val, b.at); err != nil {
				return false, err
			}
		}
		b.after = append(b.after[:0], entries.RowKey()...)
		read += entries.RowSize()
	}
}
