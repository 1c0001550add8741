package cost

import (
	"time"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/txn"
)

// AddMutations adds the rows, or ranges of rows, in mutations.
func (r *Recorder) AddMutations(rows int64) { r.write.mutations += rows }

// AddCommitWait adds the time that a commit waited for locks.
func (r *Recorder) AddCommitWait(d time.Duration) { r.locks.committing += d }

// AddCommit adds a committed transaction. If the request's CPU time was measured, it tracks the splits that the transaction wrote
// to, see TrackSplits.
func (r *Recorder) AddCommit(db *database.Database, tx *txn.Tx) {
	if tx.Stats().Keys > 0 {
		r.AddCommits(1)
	}
	weight := r.CPU.Weight()
	if weight == 0 {
		return
	}
	if r.db = db; !r.Splits.Active() {
		db.Splits().Track(&r.Splits, r.Began, weight)
	}
	tx.EachWrite(r.Splits.Wrote)
}

// AddCommits adds commits that wrote something.
func (r *Recorder) AddCommits(n int64) { r.write.commits += n }

// TrackSplits begins to track the splits that the request accesses, if one of two uses needs it:
//
//   - SPLIT_STATS. A request whose CPU time is measured stands for others whose time is not, and its splits are charged with that time.
//   - Remote calls. They are counted if the database has several splits and the request may read in more than one. If point is true, it
//     reads one row.
//
// For all other requests it costs a comparison or two. Call it after RunIn.
func (r *Recorder) TrackSplits(point bool) {
	weight := r.CPU.Weight()
	if r.Splits.Active() || weight == 0 && (point || !r.db.Splits().Many(r.Began)) {
		return
	}
	r.db.Splits().Track(&r.Splits, r.Began, weight)
}
