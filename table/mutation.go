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

// Op is what a Mutation does with a row that is there, or is not.
type Op uint8

const (
	Insert         Op = iota // there: error; missing: written
	Update                   // there: the given columns change; missing: error
	InsertOrUpdate           // there: as Update; missing: as Insert
	Replace                  // there: deleted first, children too; then as Insert
	Delete                   // there: deleted; missing: nothing
)

// Mutation is one of the mutations of a commit.
type Mutation struct {
	Op      Op
	Table   *schema.Table
	Columns []*schema.Column // that each of Rows gives; not for Delete
	Rows    [][]value.Value
	Keys    KeySet // of Delete
}

// Apply applies the mutations of one commit, all to tables of one schema version, in order, and then checks what may
// only hold when all of them are done. now is the time that no written commit
// timestamp may lie behind. The mutation count is what the client is told in commit_stats.
func Apply(ctx context.Context, w Writer, tables *Descriptors, muts []Mutation, now time.Time) (count int64, err error) {
	c, err := ApplyAll(ctx, w, tables, muts, now)
	return c.count, err
}

// ApplyAll is Apply that returns all there is to know about the changes.
func ApplyAll(ctx context.Context, w Writer, tables *Descriptors, muts []Mutation, now time.Time) (*Changes, error) {
	c := NewChanges(w, tables, now)
	c.dml = false
	for i := range muts {
		if err := c.Mutate(ctx, &muts[i]); err != nil {
			return c, err
		}
	}
	return c, c.Finish(ctx)
}
