package table

import (
	"context"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// Limits of one commit and of one DML statement, and of the size of a key
// (https://cloud.google.com/spanner/quotas#limits_for_creating_reading_updating_and_deleting_data).
const (
	MaxMutations   = 80_000
	MaxCommitBytes = 100 << 20 // in bytes: keys and values that are written, index entries included
	MaxKeyBytes    = 8 << 10
)

// Op says what a Mutation does with a row, depending on whether the row exists.
type Op uint8

const (
	Insert         Op = iota // row exists: error; row is missing: the row is written
	Update                   // row exists: the given columns change; row is missing: error
	InsertOrUpdate           // row exists: as Update; row is missing: as Insert
	Replace                  // row exists: it is deleted first, with its children; then as Insert
	Delete                   // row exists: it is deleted; row is missing: nothing happens
)

// Mutation is one of the mutations of a commit.
type Mutation struct {
	Op      Op
	Table   *schema.Table
	Columns []*schema.Column // the columns of each row of Rows; not for Delete
	Rows    [][]value.Value
	Keys    KeySet // for Delete: the keys of the rows to delete
	// Sources, if not nil, replaces Rows. It has one source for each column in Columns, and each source has Count
	// values.
	Sources []value.Source
	Count   int
}

// Apply applies the mutations of one commit in order. After the last one, it checks the constraints that earlier
// mutations may violate as long as later ones repair the violation. All tables belong to one schema version. now is the
// current time: a value for a column with allow_commit_timestamp must not be later than now. The method Count of the
// returned Changes gives the mutation count for commit_stats.
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

// RowMutations returns the largest number of mutations that one row with these columns can count as. The number
// includes the index entries that the write deletes and writes.
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
