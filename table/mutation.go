package table

import (
	"context"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// Limits of one commit's mutations, of one DML statement, and of a key
// (https://cloud.google.com/spanner/quotas#limits_for_creating_reading_updating_and_deleting_data).
const (
	MaxMutations   = 80_000
	MaxCommitBytes = 100 << 20 // keys and values written, those of indexes included
	MaxKeyBytes    = 8 << 10
)

// Op is what a Mutation does with a row that exists, or does not.
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
	Columns []*schema.Column // that each of Rows gives; not for Delete
	Rows    [][]value.Value
	Keys    KeySet // of Delete
}

// Apply applies the mutations of one commit, all to tables of one schema version, in order, and then checks the
// constraints that need to hold only after all of them. A value for a column with allow_commit_timestamp may not be later than now.
// The changes that it returns know the mutation count of commit_stats.
func Apply(ctx context.Context, w Writer, tables *Descriptors, muts []Mutation, now time.Time) (*Changes, error) {
	c := NewChanges(w, tables, now)
	c.dml = false
	for i := range muts {
		if err := c.Mutate(ctx, &muts[i]); err != nil {
			return c, err
		}
	}
	return c, c.Finish(ctx)
}
