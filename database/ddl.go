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
// What existing data needs is done between publications. The first lets new
// writes obey the new catalog; its new columns and indexes are written but not
// read, and columns that change are read as they were. When every old row has
// them, a second one opens them for reading. Last, old rows are seen to obey new
// constraints. Until then the versions are tentative: if a row cannot obey, or
// the server goes down, the old catalog is published again.
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
		return d.publish(ctx, publication{catalog: next, garbage: garbage})
	}
	if what.OfColumns() {
		return d.redefine(ctx, next, what)
	}
	filling := next.HoldBack(what)
	at, err := d.publish(ctx, publication{catalog: next, tentative: true})
	if err != nil {
		return 0, err
	}
	if filling {
		at, what, err = d.fill(ctx, old, statement, what)
	}
	if err == nil {
		err = d.validateAll(ctx, what.Validations)
	}
	if err == nil {
		err = d.settle(garbage)
	}
	if err != nil {
		return 0, d.undo(ctx, old, err)
	}
	return at, nil
}

// fill fills what was held back and then publishes the catalog as the statement means it.
func (d *Database) fill(ctx context.Context, old *schema.Catalog, statement string, held *schema.Change) (mvcc.Timestamp, *schema.Change, error) {
	if err := d.bringUp(ctx, held); err != nil {
		return 0, nil, err
	}
	final, what, err := old.Apply(statement, compiler{d.registry.cfg.Clock})
	if err != nil {
		return 0, nil, fmt.Errorf("apply again: %w", err)
	}
	final.Version = d.Catalog().Version + 1
	at, err := d.publish(ctx, publication{catalog: final, tentative: true})
	return at, what, err
}

// redefine makes next, which changes columns, the newest catalog once existing values are seen to fit. Until then reads do not
// count on what is not certain: that a column has no NULLs, or that its bytes are UTF-8.
func (d *Database) redefine(ctx context.Context, next *schema.Catalog, what *schema.Change) (mvcc.Timestamp, error) {
	old := d.Catalog()
	if _, err := d.publish(ctx, publication{catalog: old.Expecting(what), tentative: true}); err != nil {
		return 0, err
	}
	err := d.validateAll(ctx, what.Validations)
	if err != nil {
		return 0, d.undo(ctx, old, err)
	}
	next.Version = d.Catalog().Version + 1
	at, err := d.publish(ctx, publication{catalog: next})
	if err != nil {
		return 0, d.undo(ctx, old, err)
	}
	return at, nil
}

// settle says, durably, that the newest version is complete. Only now is what it dropped garbage.
func (d *Database) settle(garbage []table.Span) error {
	v := d.newest()
	v.garbage = garbage
	v.tentative.Store(false)
	return d.storeVersion(v)
}

// undo publishes the old catalog again, after a change that failed.
func (d *Database) undo(ctx context.Context, old *schema.Catalog, cause error) error {
	// Also when the change was cancelled.
	if err := d.takeBack(context.WithoutCancel(ctx), old); err != nil {
		return fmt.Errorf("undo schema change (%v): %w", cause, err)
	}
	return cause
}

// takeBack publishes an older catalog again. What indexes the newest one had besides is garbage.
func (d *Database) takeBack(ctx context.Context, old *schema.Catalog) error {
	kept := map[schema.TableID]bool{}
	for _, t := range old.Tables {
		for _, x := range t.Indexes {
			kept[x.ID] = true
		}
	}
	var garbage []table.Span
	for _, t := range d.Catalog().Tables {
		for _, x := range t.Indexes {
			if span, alone := table.IndexLayout(x).Space(); alone && !kept[x.ID] {
				garbage = append(garbage, span)
			}
		}
	}
	again, err := d.copyOf(old)
	if err != nil {
		return err
	}
	_, err = d.publish(ctx, publication{catalog: again, garbage: garbage})
	return err
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
	next := map[schema.TableID]schema.ColumnID{}
	for _, t := range newest.Tables {
		next[t.ID] = t.NextColumn
	}
	for _, t := range again.Tables {
		t.NextColumn = max(t.NextColumn, next[t.ID])
	}
	return again, nil
}

// publication is a catalog that is to become the newest.
type publication struct {
	catalog   *schema.Catalog
	garbage   []table.Span // that the catalogs before it name
	tentative bool
}

// publish makes a catalog the newest, durably, as the only thing that writes at that moment.
func (d *Database) publish(ctx context.Context, p publication) (mvcc.Timestamp, error) {
	var at mvcc.Timestamp
	err := d.txns.ChangeSchema(ctx, p.catalog, func(ts mvcc.Timestamp) error {
		v := newVersion(d, p.catalog, ts)
		v.garbage = p.garbage
		v.tentative.Store(p.tentative)
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

// abandonTentative takes back a change that was under way when the server went down.
func (d *Database) abandonTentative() error {
	if !d.newest().tentative.Load() {
		return nil
	}
	before := d.settled()
	if before == nil {
		return fmt.Errorf("schema version %d of %s is half made and no version is before it", d.Catalog().Version, d.name)
	}
	return d.takeBack(context.Background(), before.catalog)
}
