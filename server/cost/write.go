package cost

import (
	"time"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/txn"
)

// AddMutations adds the number of rows that mutations write or delete. A deleted key range counts as one row.
func (r *Recorder) AddMutations(rows int64) { r.write.mutations += rows }

// AddCommitWait adds the time that a commit waited for locks.
func (r *Recorder) AddCommitWait(d time.Duration) { r.locks.committing += d }

// AddCommit adds a committed transaction to the record. If the request's CPU time is measured, AddCommit also adds the
// splits that the transaction wrote to, because they are charged with that time (see TrackSplits).
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

// AddCommits adds n commits that wrote something.
func (r *Recorder) AddCommits(n int64) { r.write.commits += n }

// TrackSplits makes the recorder track the splits that the request accesses, if one of two uses needs them:
//
//   - SPLIT_STATS needs them if the request's CPU time is measured. A busy server measures only some requests, so it
//     charges their splits with the measured time multiplied by cpu.Meter.Weight.
//   - The count of remote calls needs them if the database has several splits and the request can read in more than
//     one. point says that the request reads only one row, and so only in one split.
//
// For all other requests TrackSplits costs a comparison or two. Call it after RunIn.
func (r *Recorder) TrackSplits(point bool) {
	weight := r.CPU.Weight()
	if r.Splits.Active() || weight == 0 && (point || !r.db.Splits().Many(r.Began)) {
		return
	}
	r.db.Splits().Track(&r.Splits, r.Began, weight)
}
