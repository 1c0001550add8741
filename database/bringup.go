package database

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// chunkRows is how many rows one transaction of a back-fill handles: enough to make its sync cheap, few
// enough not to hold up others.
const chunkRows = 1000

// bringUp gives the rows that existed when a change was published their columns and index entries.
func (d *Database) bringUp(ctx context.Context, what *schema.Change) error {
	for _, c := range what.Columns {
		err := d.inChunks(ctx, func(w table.Writer, after []byte) ([]byte, error) {
			return table.FillColumns(ctx, w, c.Table, []*schema.Column{c.Column}, d.registry.cfg.Clock(), after, chunkRows)
		})
		if err != nil {
			return err
		}
	}
	for _, x := range what.Indexes {
		err := d.inChunks(ctx, func(w table.Writer, after []byte) ([]byte, error) {
			return table.FillIndex(ctx, w, x, after, chunkRows)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// validateAll sees whether the rows that existed when a change was published obey it.
func (d *Database) validateAll(ctx context.Context, list []schema.Validation) error {
	for _, v := range list {
		if err := d.validate(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// validate looks at the rows as they are now: what is written later has to obey.
func (d *Database) validate(ctx context.Context, v schema.Validation) error {
	snapshot, err := d.txns.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		return err
	}
	defer snapshot.Close()
	var after []byte
	for {
		after, err = table.Validate(ctx, snapshot, v, d.registry.cfg.Clock(), after, chunkRows)
		if err != nil || after == nil {
			return err
		}
	}
}

// inChunks runs step in transaction after transaction, each behind the last key of the one before.
func (d *Database) inChunks(ctx context.Context, step func(w table.Writer, after []byte) (next []byte, err error)) error {
	var after []byte
	for {
		var next []byte
		err := d.retry(ctx, func(w table.Writer) (err error) {
			next, err = step(w, after)
			return err
		})
		if err != nil || next == nil {
			return err
		}
		after = next
	}
}

// retry runs work in a read-write transaction of its own until it is not aborted. A schema change aborts it.
func (d *Database) retry(ctx context.Context, work func(table.Writer) error) error {
	var age txn.Age
	for {
		tx, c := d.txns.Begin(txn.Options{Previous: age}), d.Catalog()
		err := tx.DependOn(ctx, schema.DependOnAll(c), c)
		if err == nil {
			_, err = tx.Commit(ctx, work, txn.CommitOptions{})
		}
		if err == nil {
			return nil
		}
		age = tx.Age()
		if rollback := tx.Rollback(); rollback != nil {
			return errors.Join(err, fmt.Errorf("roll back: %w", rollback))
		}
		if usererror.CodeOf(err) != codes.Aborted {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
