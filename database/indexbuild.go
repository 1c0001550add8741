package database

import (
	"context"
	"fmt"

	"github.com/crowfoot-db/crowfoot/database/job"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// An index is built without a lock. Writers keep it up to date from the moment on at which a catalog was published that has it, write-only: what
// they put there, or delete, has a later timestamp than that. The entries of the rows that were there before are written at the very timestamp of the
// publication, below all that. So the newest version of an entry is right after every write to its row:
//
//	row as it was read      entry at the publication                       seen
//	updated later           the same, and a tombstone of the writer above  no entry; the writer has put the new one
//	deleted later           likewise                                       no entry
//	written before          the same, and the writer's own above           the writer's
//
// Between the publication and the end of the build the history of the index is not that of the table. No read ever sees it: a read uses an index
// only at timestamps at or after the publication of a catalog that has it complete.
//
// What is written need not be synced: the publication that follows is synced, and comes later in the store's log. With the entries of each step goes a
// checkpoint, in one batch: after a crash the build goes on behind the last one that was kept. The entries keep their timestamp. A build may be interrupted for
// longer than versions are kept, as each step reads the rows as they are now: only a step itself may not last that long.

const (
	// buildBytes bounds the entries that are written together: the log syncs them with the commit of a user that comes behind.
	buildBytes = 64 << 10
	// buildReadBytes and buildRows bound the rows that are read for that, in one snapshot. Each step is some milliseconds of work, and waits for
	// the commits that are under way when it begins: so the build gives way to them.
	buildReadBytes = 1 << 20
	buildRows      = 1000
	// buildRest is how many times as long a step takes as the rest after it, which leaves processors and the disk to requests.
	buildRest = 2
)

// buildIndex writes the entries of x for the rows that existed when a catalog with it was published at a timestamp. It goes on behind the checkpoint of that name.
func (d *Database) buildIndex(ctx context.Context, name string, x *schema.Index, at mvcc.Timestamp, progress func(last []byte)) error {
	b := indexBuild{db: d, name: name, index: x, at: at}
	var done bool
	var err error
	if b.after, done, err = d.jobs.Position(ctx, name); done || err != nil {
		return err
	}
	for {
		began := d.registry.cfg.Clock()
		more, err := b.step(ctx)
		if err != nil {
			return err
		}
		progress(b.after)
		if !more || !sleep(ctx, d.registry.cfg.Clock().Sub(began)/buildRest) {
			return ctx.Err()
		}
	}
}

type indexBuild struct {
	db    *Database
	name  string // of the checkpoint
	index *schema.Index
	at    mvcc.Timestamp // of the entries
	after []byte         // the stored key of the last row that has its entry; nil before the first
}

// step makes the entries of the next rows; more is false if these were the last.
func (b *indexBuild) step(ctx context.Context) (more bool, err error) {
	snapshot, err := b.db.txns.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		return false, err
	}
	defer snapshot.Close()
	batch := b.db.rows.NewBatch()
	defer batch.Close()
	if more, err = b.collect(ctx, snapshot, batch); err != nil {
		return false, err
	}
	key, val, err := job.Checkpoint(b.name, b.after, !more, b.db.registry.cfg.Clock())
	if err != nil {
		return false, err
	}
	if err := batch.Put(key, val, b.at); err != nil {
		return false, err
	}
	if err := batch.CommitNoSync(); err != nil {
		return false, fmt.Errorf("write entries of index %s: %w", b.index.FullName(), err)
	}
	// A tombstone above one of these entries may have been collected if it is older than all reads may be.
	if b.db.rows.Horizon() > snapshot.Timestamp() {
		return false, fmt.Errorf("entries of index %s were written later than the version retention period allows", b.index.FullName())
	}
	return more, nil
}

// collect puts the entries of the next rows into a batch.
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
