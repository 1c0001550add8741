package database

import (
	"context"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// CheckSyntax finds what makes a whole request fail before any of its statements runs.
func (d *Database) CheckSyntax(statements []string) error {
	for _, s := range statements {
		if err := schema.CheckSyntax(s); err != nil {
			return err
		}
	}
	return nil
}

// UpdateSchema runs DDL statements in order and stops at the first failure;
// those before it stay. done is told of each that took effect, and when. One
// change runs at a time: others wait.
func (d *Database) UpdateSchema(ctx context.Context, statements []string, done func(i int, commit time.Time)) error {
	if err := d.lockSchema(ctx); err != nil {
		return err
	}
	defer d.unlockSchema()
	for i, s := range statements {
		at, err := d.change(ctx, s)
		if err != nil {
			return err
		}
		if done != nil {
			done(i, at.Time())
		}
	}
	return nil
}

func (d *Database) lockSchema(ctx context.Context) error {
	select {
	case d.changing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Database) unlockSchema() { <-d.changing }

// change runs one statement.
//
// What existing data needs is done between two publications: the first lets new
// writes obey the new catalog, its new indexes being written but not read; the
// second, when every old row obeys too, opens the indexes for reading. If a row
// cannot obey, the old catalog is published again.
func (d *Database) change(ctx context.Context, statement string) (mvcc.Timestamp, error) {
	old := d.Catalog()
	next, what, err := old.Apply(statement, compiler{d.registry.cfg.Clock})
	if err != nil {
		return 0, err
	}
	if what.Nothing {
		return d.registry.oracle.Now(), nil
	}
	garbage := droppedSpans(what)
	if len(what.Indexes)+len(what.Columns)+len(what.Validations) == 0 {
		return d.publish(ctx, next, garbage)
	}
	for _, x := range what.Indexes {
		x.State = schema.IndexWriteOnly
	}
	at, err := d.publish(ctx, next, garbage)
	if err != nil {
		return 0, err
	}
	if err := d.bringUp(ctx, what); err != nil {
		return 0, d.undo(ctx, old, what, err)
	}
	if len(what.Indexes) == 0 {
		return at, nil
	}
	final, _, err := old.Apply(statement, compiler{d.registry.cfg.Clock})
	if err != nil {
		return 0, fmt.Errorf("apply again: %w", err)
	}
	final.Version = next.Version + 1
	return d.publish(ctx, final, nil)
}

// undo publishes the old catalog again, after a change that old rows could not obey.
func (d *Database) undo(ctx context.Context, old *schema.Catalog, what *schema.Change, cause error) error {
	ctx = context.WithoutCancel(ctx) // also when the change was cancelled
	var garbage []table.Span
	for _, x := range what.Indexes {
		if old.Index(x.FullName()) == nil {
			span, _ := table.IndexLayout(x).Space()
			garbage = append(garbage, span)
		}
	}
	again, err := d.copyOf(old)
	if err == nil {
		_, err = d.publish(ctx, again, garbage)
	}
	if err != nil {
		return fmt.Errorf("undo schema change (%v): %w", cause, err)
	}
	return cause
}

// copyOf is a catalog like c, one version above the newest. IDs that were given out meanwhile are not given out again.
func (d *Database) copyOf(c *schema.Catalog) (*schema.Catalog, error) {
	data, err := c.Marshal()
	if err != nil {
		return nil, err
	}
	again, err := schema.Unmarshal(data, compiler{d.registry.cfg.Clock})
	if err != nil {
		return nil, err
	}
	newest := d.Catalog()
	again.Version = newest.Version + 1
	again.NextID = max(again.NextID, newest.NextID)
	return again, nil
}

// publish makes a catalog the newest, durably, as the only thing that writes at that moment.
func (d *Database) publish(ctx context.Context, c *schema.Catalog, garbage []table.Span) (mvcc.Timestamp, error) {
	var at mvcc.Timestamp
	err := d.txns.ChangeSchema(ctx, func(ts mvcc.Timestamp) error {
		v := newVersion(d, c, ts)
		v.garbage = garbage
		if err := d.storeVersion(v); err != nil {
			return err
		}
		list := append(append([]*version(nil), *d.versions.Load()...), v)
		d.versions.Store(&list)
		at = ts
		return nil
	})
	if err != nil {
		return 0, err
	}
	d.txns.SetRetention(d.Retention())
	return at, nil
}

// droppedSpans are the keys that nobody reads after a change.
func droppedSpans(what *schema.Change) []table.Span {
	var list []table.Span
	for _, t := range what.DroppedTables {
		if span, alone := table.TableLayout(t).Space(); alone {
			list = append(list, span)
		}
	}
	for _, x := range what.DroppedIndexes {
		if span, alone := table.IndexLayout(x).Space(); alone {
			list = append(list, span)
		}
	}
	return list
}

// abandonHalfMadeIndexes takes back a change that was under way when the server went down.
func (d *Database) abandonHalfMadeIndexes() error {
	list := *d.versions.Load()
	newest := list[len(list)-1]
	if !hasHalfMadeIndex(newest.catalog) || len(list) < 2 {
		return nil
	}
	var before *schema.Catalog
	for i := len(list) - 2; i >= 0 && before == nil; i-- {
		if !hasHalfMadeIndex(list[i].catalog) {
			before = list[i].catalog
		}
	}
	if before == nil {
		return fmt.Errorf("schema version %d of %s has a half-made index and no version before it", newest.catalog.Version, d.name)
	}
	again, err := d.copyOf(before)
	if err != nil {
		return err
	}
	_, err = d.publish(context.Background(), again, nil)
	return err
}

func hasHalfMadeIndex(c *schema.Catalog) bool {
	for _, t := range c.Tables {
		for _, x := range t.Indexes {
			if x.State != schema.IndexReadWrite {
				return true
			}
		}
	}
	return false
}
