package table

import (
	"context"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// Limits of the mutations of one commit, of one DML statement, and of a key
// (https://cloud.google.com/spanner/quotas#limits_for_creating_reading_updating_and_deleting_data).
const (
	MaxMutations   = 80_000
	MaxCommitBytes = 100 << 20 // keys and values that are written, index entries included
	MaxKeyBytes    = 8 << 10
)

// Op says what a Mutation does if its row exists and if it does not.
type Op uint8

const (
	Insert         Op = iota // exists: error; missing: written
	Update                   // exists: the given columns change; missing: error
	InsertOrUpdate           // exists: as Update; missing: as Insert
	Replace                  // exists: deleted first, with its children; then as Insert
	Delete                   // exists: deleted; missing: nothing
)

// Mutation is one of the mutations of a commit.
type Mutation struct {
	Op      Op
	Table   *schema.Table
	Columns []*schema.Column // the columns of each of Rows; not for Delete
	Rows    [][]value.Value
	Keys    KeySet // of Delete
	// Sources, if not nil, replaces Rows. It has a source for each of Columns, and each gives Count values.
	Sources []value.Source
	Count   int
}

// Apply applies the mutations of one commit in order. Then it checks the constraints that need to hold only after all
// of them. All tables belong to one schema version. A value for a column with allow_commit_timestamp may not be later
// than now. Count of the returned Changes is the mutation count for commit_stats.
func Apply(ctx context.Context, w Writer, tables *Descriptors, muts []Mutation, now time.Time) (*Changes, error) {
	c := NewChanges(w, tables, now)
	c.dml, c.actions = false, newActions(muts)
	for i := range muts {
		if err := c.Mutate(ctx, &muts[i]); err != nil {
			return c, err
		}
	}
	return c, c.Finish(ctx)
}

// RowMutations returns the largest number of mutations that a row with these columns may count as. It includes the
// index entries that the row replaces and writes.
func RowMutations(tables *Descriptors, t *schema.Table, op Op, columns []*schema.Column) (int64, error) {
	d, err := tables.of(t)
	if err != nil {
		return 0, err
	}
	b, err := newRowBuilder(newTarget(d, false), op, columns)
	if err != nil {
		return 0, err
	}
	n := max(b.inserts, b.updates)
	for _, x := range d.indexes {
		n += 1 + int64(len(x.index.Key)+len(x.storing))
	}
	return n, nil
}
